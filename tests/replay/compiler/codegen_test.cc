#include "replay/compiler/codegen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "llvm/IR/Instructions.h"

namespace reprise {
namespace {

TEST(CodegenTest, WritesNoNewerPtxThanTheLinkerTakes) {
  llvm::LLVMContext context;
  llvm::Module module("empty", context);
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
  auto* function = llvm::Function::Create(
      type, llvm::GlobalValue::ExternalLinkage, "nothing", module);
  function->addFnAttr("target-features", "+ptx88,+sm_90");
  llvm::ReturnInst::Create(context,
                           llvm::BasicBlock::Create(context, "", function));
  for (const auto& [newest, version] :
       {std::pair(84, ".version 8.4"), std::pair(kAnyPtx, ".version 8.8")}) {
    auto machine = CreateGpuTargetMachine("sm_90", module, true, newest);
    ASSERT_TRUE(machine.ok()) << machine.status();
    module.setDataLayout((*machine)->createDataLayout());
    module.setTargetTriple((*machine)->getTargetTriple());
    const auto ptx =
        EmitCode(**machine, llvm::CodeGenFileType::AssemblyFile, module);
    ASSERT_TRUE(ptx.ok()) << ptx.status();
    EXPECT_THAT(*ptx, ::testing::HasSubstr(version));
  }
}

}  // namespace
}  // namespace reprise
