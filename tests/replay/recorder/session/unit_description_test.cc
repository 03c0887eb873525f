#include "replay/recorder/session/unit_description.h"

#include <gtest/gtest.h>

#include <cstring>

namespace reprise {
namespace {

// A kernel of pointers, with arguments and memory.
class UnitDescriptionTest : public testing::Test {
 protected:
  void AddPointer(v1::ElementType pointee, uint64_t value) {
    info_.add_parameter_offsets(arguments_.size());
    info_.add_parameter_bytes(8);
    info_.add_parameter_pointees(pointee);
    arguments_.append(reinterpret_cast<const char*>(&value), 8);
  }
  void AddRange(uint64_t address, uint64_t bytes, v1::ElementType type) {
    v1::MemoryRange* range = unit_.add_memory();
    range->set_address(address);
    range->set_bytes(bytes);
    range->set_element_type(type);
  }
  v1::ElementType Type(int range) const {
    return unit_.memory(range).element_type();
  }

  v1::CompiledKernelInfo info_;
  std::string arguments_;
  v1::Unit unit_;
};

TEST_F(UnitDescriptionTest, HalvesThatMovedAsIntegersAreHalves) {
  AddPointer(v1::ELEMENT_TYPE_F16, 0x1000);
  AddPointer(v1::ELEMENT_TYPE_BF16, 0x3010);
  AddPointer(v1::ELEMENT_TYPE_I32, 0x5000);
  AddRange(0x1000, 0x1000, v1::ELEMENT_TYPE_I16);
  AddRange(0x2000, 0x100, v1::ELEMENT_TYPE_UNTYPED);  // goes on
  AddRange(0x3000, 0x1000, v1::ELEMENT_TYPE_I32);
  AddRange(0x5000, 0x1000, v1::ELEMENT_TYPE_I32);
  ApplyDeclaredTypes(info_, arguments_, &unit_);
  EXPECT_EQ(Type(0), v1::ELEMENT_TYPE_F16);
  EXPECT_EQ(Type(1), v1::ELEMENT_TYPE_F16);
  EXPECT_EQ(Type(2), v1::ELEMENT_TYPE_BF16);
  EXPECT_EQ(Type(3), v1::ELEMENT_TYPE_I32);
}

TEST_F(UnitDescriptionTest, MixedMemoryKeepsWhatTheLaunchShowed) {
  AddPointer(v1::ELEMENT_TYPE_F16, 0x1000);
  AddPointer(v1::ELEMENT_TYPE_I32, 0x1800);
  AddPointer(v1::ELEMENT_TYPE_F16, 0x4000);
  AddRange(0x1000, 0x1000, v1::ELEMENT_TYPE_I32);
  AddRange(0x4000, 0x1000, v1::ELEMENT_TYPE_F32);
  ApplyDeclaredTypes(info_, arguments_, &unit_);
  EXPECT_EQ(Type(0), v1::ELEMENT_TYPE_I32);
  EXPECT_EQ(Type(1), v1::ELEMENT_TYPE_F32);
}

TEST_F(UnitDescriptionTest, TolerancesReachDeclaredHalves) {
  AddPointer(v1::ELEMENT_TYPE_F16, 0x1000);
  AddRange(0x1000, 0x1000, v1::ELEMENT_TYPE_I16);
  v1::ToleranceAnnotation* annotation = info_.add_tolerances();
  annotation->set_parameter(0);
  annotation->mutable_tolerance()->set_relative(0.25);
  ApplyDeclaredTypes(info_, arguments_, &unit_);
  ApplyTolerances(info_, arguments_, &unit_);
  EXPECT_EQ(unit_.memory(0).tolerance().relative(), 0.25);
}

}  // namespace
}  // namespace reprise
