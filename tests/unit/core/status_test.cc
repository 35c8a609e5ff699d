#include "gradwire/status.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/status_macros.h"

namespace gradwire {
namespace {

TEST(Status, CodesHaveStableNumbersAndNamesOfTheirOwn) {
  EXPECT_EQ(static_cast<int>(ErrorCode::kInvalidArgument), 1);
  EXPECT_EQ(static_cast<int>(ErrorCode::kTruncated), 20);
  EXPECT_EQ(static_cast<int>(ErrorCode::kShapeMismatch), 28);
  EXPECT_EQ(static_cast<int>(ErrorCode::kPeerMismatch), 40);
  EXPECT_EQ(static_cast<int>(ErrorCode::kInternal), 60);
  EXPECT_EQ(error_name(ErrorCode::kTruncated), "Truncated");
  EXPECT_EQ(error_name(ErrorCode{999}), "Unknown");
  std::set<std::string_view> names;
  int codes = 0;
  for (int number = 0; number < 256; ++number) {
    const std::string_view name = error_name(static_cast<ErrorCode>(number));
    if (name == "Unknown") continue;
    names.insert(name);
    ++codes;
  }
  EXPECT_EQ(codes, 22);
  EXPECT_EQ(names.size(), 22u);
}

TEST(Status, TextNamesFieldBothValuesRankAndSequence) {
  Error error;
  error.code = ErrorCode::kPeerMismatch;
  error.field = "codec";
  error.mine = "lossless";
  error.theirs = "none";
  error.rank = 1;
  error.sequence = 7;
  EXPECT_EQ(error.to_string(),
            "PeerMismatch: codec: mine lossless, theirs none (rank 1, sequence 7)");
  error.sequence = 0;
  error.message = "more";
  EXPECT_EQ(error.to_string(), "PeerMismatch: codec: mine lossless, theirs none: more (rank 1)");
}

TEST(Status, TextOfPlainErrors) {
  Error error;
  error.code = ErrorCode::kOutOfRange;
  error.field = "group";
  EXPECT_EQ(error.to_string(), "OutOfRange: group");
  error.mine = "5";
  error.message = "group is 5, must be 8";
  EXPECT_EQ(error.to_string(), "OutOfRange: group is 5, must be 8");
  error.rank = 0;
  EXPECT_EQ(error.to_string(), "OutOfRange: group is 5, must be 8 (rank 0)");
  error.rank = -1;
  error.sequence = 3;
  EXPECT_EQ(error.to_string(), "OutOfRange: group is 5, must be 8 (sequence 3)");
}

Result<int> half(int number) {
  if (number % 2 == 0) return number / 2;
  Error error;
  error.code = ErrorCode::kInvalidArgument;
  return error;
}

Result<int> quarter(int number) {
  GRADWIRE_ASSIGN_OR_RETURN(const int once, half(number));
  GRADWIRE_ASSIGN_OR_RETURN(const int twice, half(once));
  return twice;
}

Status divisible_by_four(int number) {
  GRADWIRE_RETURN_IF_ERROR(quarter(number));
  return {};
}

TEST(Status, MacrosReturnTheFirstError) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_FALSE(quarter(6).ok());
  EXPECT_FALSE(quarter(5).ok());
  EXPECT_TRUE(divisible_by_four(8).ok());
  EXPECT_EQ(divisible_by_four(6).error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace gradwire
