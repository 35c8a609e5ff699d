#include "gradwire/frame.h"

namespace gradwire {

std::string_view scale_name(BoundScale scale) noexcept {
  switch (scale) {
    case BoundScale::kNone:
      return "none";
    case BoundScale::kRms:
      return "rms";
    case BoundScale::kRange:
      return "range";
    case BoundScale::kAbsMax:
      return "absmax";
    case BoundScale::kAbsolute:
      return "absolute";
  }
  return "unknown";
}

std::string_view coder_name(Coder coder) noexcept {
  switch (coder) {
    case Coder::kNone:
      return "none";
    case Coder::kTans:
      return "tans";
    case Coder::kHuffman:
      return "huffman";
  }
  return "unknown";
}

std::string_view op_name(Op op) noexcept {
  switch (op) {
    case Op::kNone:
      return "none";
    case Op::kAllReduce:
      return "all_reduce";
    case Op::kReduceScatter:
      return "reduce_scatter";
    case Op::kAllGather:
      return "all_gather";
    case Op::kBroadcast:
      return "broadcast";
    case Op::kError:
      return "error";
  }
  return "unknown";
}

std::string_view phase_name(Phase phase) noexcept {
  switch (phase) {
    case Phase::kWhole:
      return "whole";
    case Phase::kContribution:
      return "contribution";
    case Phase::kResult:
      return "result";
  }
  return "unknown";
}

std::string_view reduction_name(Reduction reduction) noexcept {
  switch (reduction) {
    case Reduction::kNone:
      return "none";
    case Reduction::kSum:
      return "sum";
    case Reduction::kAvg:
      return "avg";
  }
  return "unknown";
}

std::string_view schedule_name(Schedule schedule) noexcept {
  switch (schedule) {
    case Schedule::kNone:
      return "none";
    case Schedule::kDirect:
      return "direct";
  }
  return "unknown";
}

}  // namespace gradwire
