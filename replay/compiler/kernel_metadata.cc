#include "replay/compiler/kernel_metadata.h"

#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Metadata.h"
#include "llvm/Transforms/Utils/Local.h"
#include "replay/compiler/tolerance_annotation.h"

namespace reprise {
namespace {

constexpr char kMetadataName[] = "reprise.kernels";

// --- From the AST.

v1::ElementType ScalarType(const clang::BuiltinType& type,
                           const clang::ASTContext& context) {
  if (type.getKind() == clang::BuiltinType::Float) return v1::ELEMENT_TYPE_F32;
  if (type.getKind() == clang::BuiltinType::Double) return v1::ELEMENT_TYPE_F64;
  if (type.getKind() == clang::BuiltinType::Float16 ||
      type.getKind() == clang::BuiltinType::Half)
    return v1::ELEMENT_TYPE_F16;
  if (type.getKind() == clang::BuiltinType::BFloat16)
    return v1::ELEMENT_TYPE_BF16;
  if (!type.isInteger()) return v1::ELEMENT_TYPE_UNTYPED;
  switch (context.getTypeSize(&type)) {
    case 8:
      return v1::ELEMENT_TYPE_I8;
    case 16:
      return v1::ELEMENT_TYPE_I16;
    case 32:
      return v1::ELEMENT_TYPE_I32;
    case 64:
      return v1::ELEMENT_TYPE_I64;
    default:
      return v1::ELEMENT_TYPE_UNTYPED;
  }
}

v1::ElementType ElementTypeOf(clang::QualType type,
                              const clang::ASTContext& context, int depth = 0);

// The type that all fields have in common; untyped with gaps between them.
v1::ElementType RecordElement(const clang::RecordDecl& record,
                              const clang::ASTContext& context, int depth) {
  const llvm::StringRef name = record.getName();
  if (name == "__half" || name == "__half2") return v1::ELEMENT_TYPE_F16;
  if (name == "__nv_bfloat16" || name == "__nv_bfloat162")
    return v1::ELEMENT_TYPE_BF16;
  v1::ElementType common = v1::ELEMENT_TYPE_UNTYPED;
  uint64_t bits = 0;
  for (const clang::FieldDecl* field : record.fields()) {
    const v1::ElementType type =
        ElementTypeOf(field->getType(), context, depth + 1);
    if (type == v1::ELEMENT_TYPE_UNTYPED) return type;
    if (common != v1::ELEMENT_TYPE_UNTYPED && type != common)
      return v1::ELEMENT_TYPE_UNTYPED;
    common = type;
    bits += context.getTypeSize(field->getType());
  }
  const auto* cxx = llvm::dyn_cast<clang::CXXRecordDecl>(&record);
  if (cxx != nullptr && (cxx->getNumBases() > 0 || cxx->isUnion()))
    return v1::ELEMENT_TYPE_UNTYPED;
  return bits == context.getTypeSize(context.getCanonicalTagType(&record))
             ? common
             : v1::ELEMENT_TYPE_UNTYPED;
}

v1::ElementType ElementTypeOf(clang::QualType type,
                              const clang::ASTContext& context, int depth) {
  if (depth > 8) return v1::ELEMENT_TYPE_UNTYPED;
  type = type.getCanonicalType().getUnqualifiedType();
  while (const clang::ArrayType* array = context.getAsArrayType(type))
    type = array->getElementType().getCanonicalType().getUnqualifiedType();
  if (const auto* builtin = type->getAs<clang::BuiltinType>())
    return ScalarType(*builtin, context);
  const clang::RecordDecl* record = type->getAsRecordDecl();
  if (record == nullptr || record->getDefinition() == nullptr)
    return v1::ELEMENT_TYPE_UNTYPED;
  return RecordElement(*record->getDefinition(), context, depth);
}

void AddTolerances(const clang::Decl& decl, int parameter,
                   v1::CompiledKernelInfo& kernel) {
  for (const auto* attribute : decl.specific_attrs<clang::AnnotateAttr>()) {
    const std::optional<v1::Tolerance> tolerance =
        ParseToleranceAnnotation(attribute->getAnnotation().str());
    if (!tolerance) continue;
    v1::ToleranceAnnotation* annotation = kernel.add_tolerances();
    annotation->set_parameter(parameter);
    *annotation->mutable_tolerance() = *tolerance;
  }
}

v1::CompiledKernelInfo DescribeKernel(const clang::FunctionDecl& function,
                                      const std::string& symbol,
                                      const clang::ASTContext& context) {
  v1::CompiledKernelInfo kernel;
  kernel.set_symbol(symbol);
  // Of an instantiation: where the template is defined.
  const clang::FunctionDecl* pattern =
      function.getTemplateInstantiationPattern();
  const clang::FunctionDecl& written = pattern != nullptr ? *pattern : function;
  const clang::PresumedLoc place =
      context.getSourceManager().getPresumedLoc(written.getBeginLoc());
  if (place.isValid()) {
    kernel.set_source_path(place.getFilename());
    kernel.set_source_line(place.getLine());
  }
  AddTolerances(function, -1, kernel);
  for (unsigned i = 0; i < function.getNumParams(); ++i) {
    const clang::ParmVarDecl& parameter = *function.getParamDecl(i);
    kernel.add_parameter_names(parameter.getName().str());
    const clang::QualType pointee = parameter.getType()->getPointeeType();
    kernel.add_parameter_pointees(pointee.isNull()
                                      ? v1::ELEMENT_TYPE_UNTYPED
                                      : ElementTypeOf(pointee, context));
    AddTolerances(parameter, static_cast<int>(i), kernel);
  }
  return kernel;
}

// --- Into metadata and back.

class MetadataWriter {
 public:
  explicit MetadataWriter(llvm::LLVMContext& context) : context_(context) {}

  llvm::MDNode* Kernel(const v1::CompiledKernelInfo& kernel) {
    std::vector<llvm::Metadata*> names, pointees, tolerances;
    for (const std::string& name : kernel.parameter_names())
      names.push_back(Text(name));
    for (const int pointee : kernel.parameter_pointees())
      pointees.push_back(Integer(pointee));
    for (const v1::ToleranceAnnotation& item : kernel.tolerances()) {
      tolerances.push_back(Integer(item.parameter()));
      tolerances.push_back(Real(item.tolerance().absolute()));
      tolerances.push_back(Real(item.tolerance().relative()));
      tolerances.push_back(Real(item.tolerance().outlier_share()));
    }
    return Node({Text(kernel.symbol()), Text(kernel.source_path()),
                 Integer(kernel.source_line()), Node(names), Node(pointees),
                 Node(tolerances)});
  }

 private:
  llvm::Metadata* Text(const std::string& text) {
    return llvm::MDString::get(context_, text);
  }
  llvm::Metadata* Integer(int64_t value) {
    return llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(
        llvm::Type::getInt64Ty(context_), static_cast<uint64_t>(value)));
  }
  llvm::Metadata* Real(double value) {
    return llvm::ConstantAsMetadata::get(
        llvm::ConstantFP::get(llvm::Type::getDoubleTy(context_), value));
  }
  llvm::MDNode* Node(llvm::ArrayRef<llvm::Metadata*> items) {
    return llvm::MDNode::get(context_, items);
  }

  llvm::LLVMContext& context_;
};

std::string TextAt(const llvm::MDNode& node, unsigned index) {
  const auto* text = llvm::dyn_cast<llvm::MDString>(node.getOperand(index));
  return text == nullptr ? "" : text->getString().str();
}

int64_t IntegerAt(const llvm::MDNode& node, unsigned index) {
  const auto* value =
      llvm::mdconst::dyn_extract<llvm::ConstantInt>(node.getOperand(index));
  return value == nullptr ? 0 : value->getSExtValue();
}

double RealAt(const llvm::MDNode& node, unsigned index) {
  const auto* value =
      llvm::mdconst::dyn_extract<llvm::ConstantFP>(node.getOperand(index));
  return value == nullptr ? 0 : value->getValueAPF().convertToDouble();
}

const llvm::MDNode& NodeAt(const llvm::MDNode& node, unsigned index) {
  return *llvm::cast<llvm::MDNode>(node.getOperand(index));
}

void RemoveAnnotations(llvm::Module& module) {
  std::vector<llvm::Instruction*> dead;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        if (intrinsic != nullptr &&
            intrinsic->getIntrinsicID() == llvm::Intrinsic::var_annotation)
          dead.push_back(intrinsic);
      }
    }
  }
  for (llvm::Instruction* instruction : dead) instruction->eraseFromParent();
  if (auto* all = module.getGlobalVariable("llvm.global.annotations"))
    all->eraseFromParent();
  std::vector<llvm::GlobalVariable*> strings;
  for (llvm::GlobalVariable& global : module.globals()) {
    global.removeDeadConstantUsers();
    if (global.hasLocalLinkage() && global.getSection() == "llvm.metadata" &&
        global.use_empty())
      strings.push_back(&global);
  }
  for (llvm::GlobalVariable* text : strings) text->eraseFromParent();
}

}  // namespace

std::vector<v1::CompiledKernelInfo> DescribeKernels(
    clang::ASTContext& context, clang::CodeGenerator& generator) {
  std::vector<v1::CompiledKernelInfo> kernels;
  if (generator.GetModule() == nullptr) return kernels;
  for (const llvm::Function& function : *generator.GetModule()) {
    if (function.isDeclaration() ||
        function.getCallingConv() != llvm::CallingConv::PTX_Kernel)
      continue;
    const auto* decl = llvm::dyn_cast_or_null<clang::FunctionDecl>(
        generator.GetDeclForMangledName(function.getName()));
    if (decl != nullptr)
      kernels.push_back(
          DescribeKernel(*decl, function.getName().str(), context));
  }
  return kernels;
}

void AttachKernelMetadata(const std::vector<v1::CompiledKernelInfo>& kernels,
                          llvm::Module& module) {
  RemoveAnnotations(module);
  if (kernels.empty()) return;
  llvm::NamedMDNode* all = module.getOrInsertNamedMetadata(kMetadataName);
  MetadataWriter writer(module.getContext());
  for (const v1::CompiledKernelInfo& kernel : kernels)
    all->addOperand(writer.Kernel(kernel));
}

void ReadKernelMetadata(const llvm::Module& module,
                        v1::CompiledKernelInfo& kernel) {
  const llvm::NamedMDNode* all = module.getNamedMetadata(kMetadataName);
  if (all == nullptr) return;
  for (const llvm::MDNode* node : all->operands()) {
    if (node->getNumOperands() != 6 || TextAt(*node, 0) != kernel.symbol())
      continue;
    kernel.set_source_path(TextAt(*node, 1));
    kernel.set_source_line(static_cast<uint32_t>(IntegerAt(*node, 2)));
    const llvm::MDNode& names = NodeAt(*node, 3);
    for (unsigned i = 0; i < names.getNumOperands(); ++i)
      kernel.add_parameter_names(TextAt(names, i));
    const llvm::MDNode& pointees = NodeAt(*node, 4);
    for (unsigned i = 0; i < pointees.getNumOperands(); ++i)
      kernel.add_parameter_pointees(
          static_cast<v1::ElementType>(IntegerAt(pointees, i)));
    const llvm::MDNode& tolerances = NodeAt(*node, 5);
    for (unsigned i = 0; i + 3 < tolerances.getNumOperands(); i += 4) {
      v1::ToleranceAnnotation* annotation = kernel.add_tolerances();
      annotation->set_parameter(static_cast<int>(IntegerAt(tolerances, i)));
      annotation->mutable_tolerance()->set_absolute(RealAt(tolerances, i + 1));
      annotation->mutable_tolerance()->set_relative(RealAt(tolerances, i + 2));
      annotation->mutable_tolerance()->set_outlier_share(
          RealAt(tolerances, i + 3));
    }
    return;
  }
}

}  // namespace reprise
