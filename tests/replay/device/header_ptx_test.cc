// The inline PTX of CUDA's own headers: how much of it the cpu device runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Support/SourceMgr.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/replay/device/device_test_util.h"

namespace reprise {
namespace {

// Of one header: distinct statements, and those that are refused, by message.
struct Count {
  int statements = 0;
  std::map<std::string, int> refused;
  int translated() const {
    int count = statements;
    for (const auto& [what, times] : refused) count -= times;
    return count;
  }
};

class HeaderPtxTest : public testing::Test {
 protected:
  void SetUp() override {
    llvm::SMDiagnostic diagnostic;
    headers_ =
        llvm::parseIRFile(KernelBitcode("header_ptx"), diagnostic, context_);
    ASSERT_NE(headers_, nullptr) << diagnostic.getMessage().str();
  }
  // Every statement once for each header.
  std::map<std::string, Count> CountAll();
  absl::Status Lower(const llvm::CallInst& statement);

  llvm::LLVMContext context_;
  std::unique_ptr<llvm::Module> headers_;
};

// A kernel of the statement alone: operands come from memory, except those that
// have to be constants, and results go there.
absl::Status HeaderPtxTest::Lower(const llvm::CallInst& statement) {
  llvm::Module module("statement", context_);
  module.setTargetTriple(headers_->getTargetTriple());
  module.setDataLayout(headers_->getDataLayout());
  llvm::IRBuilder<> b(context_);
  auto* kernel = llvm::Function::Create(
      llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy()}, false),
      llvm::Function::ExternalLinkage, "Kernel", module);
  kernel->setCallingConv(llvm::CallingConv::PTX_Kernel);
  b.SetInsertPoint(llvm::BasicBlock::Create(context_, "entry", kernel));
  llvm::SmallVector<llvm::Value*, 8> operands;
  for (llvm::Value* operand : statement.args()) {
    operands.push_back(llvm::isa<llvm::ConstantInt>(operand)
                           ? operand
                           : b.CreateLoad(operand->getType(), kernel->getArg(0),
                                          /*isVolatile=*/true));
  }
  llvm::Value* result = b.CreateCall(statement.getFunctionType(),
                                     statement.getCalledOperand(), operands);
  if (!result->getType()->isVoidTy())
    b.CreateStore(result, kernel->getArg(0), /*isVolatile=*/true);
  b.CreateRetVoid();
  return LowerToHost(module, {}).status();
}

// "suld.b.1d.v2.b16.trap" counts as "suld".
std::string Refused(const absl::Status& status) {
  const std::string message(status.message());
  const size_t start = message.find("inline PTX ");
  if (start == std::string::npos) return message;
  return message.substr(start + 11,
                        message.find_first_of(". ", start + 11) - start - 11);
}

std::map<std::string, Count> HeaderPtxTest::CountAll() {
  std::map<std::string, Count> counts;
  std::set<std::pair<std::string, std::string>> seen;
  for (llvm::Function& function : *headers_) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
      if (call == nullptr || !call->isInlineAsm()) continue;
      auto* text = llvm::cast<llvm::InlineAsm>(call->getCalledOperand());
      const std::string file = call->getDebugLoc()
                                   ? call->getDebugLoc()->getFilename().str()
                                   : "libdevice";
      const std::string header = file.substr(file.rfind('/') + 1);
      const std::string key = absl::StrCat(text->getAsmString().str(), "\n",
                                           text->getConstraintString().str());
      if (text->getAsmString().empty() || !seen.emplace(header, key).second)
        continue;
      Count& count = counts[header];
      ++count.statements;
      const absl::Status status = Lower(*call);
      if (!status.ok()) ++count.refused[Refused(status)];
    }
  }
  return counts;
}

std::string Row(const std::string& header, const Count& count) {
  std::string refused;
  for (const auto& [what, times] : count.refused)
    absl::StrAppend(&refused, refused.empty() ? "" : ", ", "`", what, "` (",
                    times, ")");
  return absl::StrCat("| `", header, "` | ", count.statements, " | ",
                      count.translated(), " | ", refused, " |");
}

// docs/inline-ptx.md has these rows.
TEST_F(HeaderPtxTest, IsTranslatedAsTheDocumentationSays) {
  const char* source = std::getenv("REPRISE_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "set REPRISE_SOURCE_DIR, as ctest does";
  std::ifstream file(absl::StrCat(source, "/docs/inline-ptx.md"));
  std::stringstream page;
  page << file.rdbuf();
  std::string rows;
  bool equal = true;
  for (const auto& [header, count] : CountAll()) {
    const std::string row = Row(header, count);
    absl::StrAppend(&rows, row, "\n");
    if (page.str().find(row + "\n") == std::string::npos) equal = false;
  }
  EXPECT_TRUE(equal) << "the rows of docs/inline-ptx.md should be\n" << rows;
}

}  // namespace
}  // namespace reprise
