#include "services/common/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay/base/file_util.h"

namespace reprise {
namespace {

using testing::HasSubstr;

class CertificatesTest : public testing::Test {
 protected:
  static unsigned ModeOf(const std::string& path) {
    struct stat info = {};
    stat(path.c_str(), &info);
    return info.st_mode & 0777;
  }
  TemporaryDirectory directory_ = *TemporaryDirectory::Create("certs-test");
  std::string certs_ = directory_.path() + "/certs";
};

TEST_F(CertificatesTest, NobodyElseReadsThem) {
  ASSERT_EQ(
      MakeCertificates(certs_, {.hosts = {"gpu7.example.org", "10.0.0.7"}}),
      absl::OkStatus());
  EXPECT_EQ(ModeOf(certs_), 0700u);
  for (const char* file :
       {"/ca.key", "/ca.pem", "/server.key", "/client.pem", "/viewer.key"})
    EXPECT_EQ(ModeOf(certs_ + file), 0600u) << file;
}

TEST_F(CertificatesTest, AuthorityIsKeptAndRolesAreMadeAnew) {
  ASSERT_EQ(MakeCertificates(certs_, {}), absl::OkStatus());
  const TlsFiles before = *ReadTlsFiles(certs_, "client");
  ASSERT_EQ(MakeCertificates(certs_, {}), absl::OkStatus());
  const TlsFiles after = *ReadTlsFiles(certs_, "client");
  EXPECT_EQ(before.authority, after.authority);
  EXPECT_NE(before.key, after.key);
}

TEST_F(CertificatesTest, ErrorsSayWhatToDo) {
  EXPECT_THAT(std::string(ReadTlsFiles(certs_, "server").status().message()),
              HasSubstr("reprise certs " + certs_));
  EXPECT_EQ(MakeCertificates(certs_, {.hosts = {"a b"}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeCertificates(certs_, {.hosts = {}, .days = 0}).code(),
            absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(MakeCertificates(certs_, {}), absl::OkStatus());
  ASSERT_EQ(chmod((certs_ + "/server.key").c_str(), 0644), 0);
  EXPECT_EQ(ReadTlsFiles(certs_, "server").status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(chmod(certs_.c_str(), 0755), 0);
  EXPECT_EQ(MakeCertificates(certs_, {}).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(chmod(certs_.c_str(), 0700), 0);
  // Nobody makes another authority because a file was moved away.
  ASSERT_EQ(unlink((certs_ + "/ca.key").c_str()), 0);
  EXPECT_EQ(MakeCertificates(certs_, {}).code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(WriteFileAtomically(certs_ + "/ca.key", "nonsense"),
            absl::OkStatus());
  EXPECT_EQ(MakeCertificates(certs_, {}).code(), absl::StatusCode::kDataLoss);
}

TEST(RoleOfTest, IsInTheCommonName) {
  EXPECT_EQ(RoleOf("reprise viewer"), "viewer");
  EXPECT_EQ(RoleOf("reprise authority"), "");
  EXPECT_EQ(RoleOf("viewer"), "");
}

}  // namespace
}  // namespace reprise
