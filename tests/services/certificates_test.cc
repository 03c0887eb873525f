#include "services/common/certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

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

TEST_F(CertificatesTest, WhatDoesNotHoldIsFoundWhenItIsRead) {
  ASSERT_EQ(MakeCertificates(certs_, {.hosts = {}, .days = 10}),
            absl::OkStatus());
  const absl::Time now = absl::Now();
  const auto files = ReadTlsFiles(certs_, "client");
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_GT(files->expires, now + absl::Hours(24 * 9));
  EXPECT_LT(files->expires, now + absl::Hours(24 * 11));
  const auto message = [&](absl::Time when) {
    return std::string(ReadTlsFiles(certs_, "client", when).status().message());
  };
  EXPECT_THAT(message(now + absl::Hours(24 * 11)),
              testing::AllOf(HasSubstr("expired"),
                             HasSubstr("reprise certs " + certs_)));
  EXPECT_THAT(message(now - absl::Hours(24)), HasSubstr("not yet valid"));
  // Its authority lives ten times as long.
  EXPECT_EQ(MakeCertificates(certs_, {.hosts = {}, .days = 99}),
            absl::OkStatus());
  const absl::Status longer =
      MakeCertificates(certs_, {.hosts = {}, .days = 101});
  EXPECT_EQ(longer.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(longer.message()), HasSubstr("fewer --days"));
}

TEST_F(CertificatesTest, FilesOfTwoDirectoriesAreNotMixed) {
  const std::string other = directory_.path() + "/other";
  ASSERT_EQ(MakeCertificates(certs_, {}), absl::OkStatus());
  ASSERT_EQ(MakeCertificates(other, {}), absl::OkStatus());
  const auto mix = [&](const std::string& file) {
    std::filesystem::copy_file(
        other + file, certs_ + file,
        std::filesystem::copy_options::overwrite_existing);
    return std::string(ReadTlsFiles(certs_, "client").status().message());
  };
  EXPECT_THAT(mix("/client.pem"), HasSubstr("is not the key of client.pem"));
  EXPECT_THAT(mix("/client.key"), HasSubstr("does not hold under ca.pem"));
  EXPECT_EQ(mix("/ca.pem"), "");
  ASSERT_EQ(WriteFileAtomically(certs_ + "/client.key", "nonsense", 0600),
            absl::OkStatus());
  const absl::Status status = ReadTlsFiles(certs_, "client").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("client.key holds no key"));
}

TEST(RoleOfTest, IsInTheCommonName) {
  EXPECT_EQ(RoleOf("reprise viewer"), "viewer");
  EXPECT_EQ(RoleOf("reprise authority"), "");
  EXPECT_EQ(RoleOf("viewer"), "");
}

}  // namespace
}  // namespace reprise
