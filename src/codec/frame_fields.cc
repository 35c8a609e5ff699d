// Between header fields and the public structs.
#include "codec/coded_block.h"
#include "codec/pipeline.h"
#include "core/fp_environment.h"
#include "frame/limits.h"

namespace gradwire::internal {

FrameHeader make_header(const CodecSpec& spec, DType dtype, const FrameContext& context) {
  const FpEnvironment environment;  // rounding upwards could make it the next table
  FrameHeader header;
  header.op = context.op;
  header.phase = context.phase;
  header.dtype = dtype;
  header.reduction = context.reduction;
  header.codec = spec.id;
  header.coder = spec.coder;
  header.table = is_coded(spec.id) ? coded_table(spec) : 0;
  header.schedule = context.schedule;
  header.rounding = spec.rounding;
  header.group = spec.group;
  header.block_values = spec.block_values;
  header.scale = spec.scale;
  header.quantizer_step = spec.id == CodecId::kErrorBounded ? spec.bound : spec.step;
  header.mantissa = spec.mantissa;
  header.bits = spec.bits;
  header.cast_dtype = spec.cast_dtype;
  header.options = spec.options;
  header.world = context.world;
  header.sender = context.sender;
  header.segment = context.segment;
  header.segment_count = context.segment_count;
  header.group_id = context.group_id;
  header.step = context.step;
  header.sequence = context.sequence;
  header.seed = spec.seed;
  header.variant = spec.variant;
  header.first_value = context.first_value;
  return header;
}

CodecSpec header_spec(const FrameHeader& header) {
  CodecSpec spec;
  spec.id = header.codec;
  spec.coder = header.coder;
  spec.group = header.group;
  (header.codec == CodecId::kErrorBounded ? spec.bound : spec.step) = header.quantizer_step;
  spec.scale = header.scale;
  spec.options = header.options;
  spec.mantissa = header.mantissa;
  spec.bits = header.bits;
  spec.cast_dtype = header.cast_dtype;
  spec.rounding = header.rounding;
  spec.seed = header.seed;
  spec.variant = header.variant;
  spec.block_values = header.block_values;
  return spec;
}

FrameContext header_context(const FrameHeader& header) {
  FrameContext context;
  context.op = header.op;
  context.phase = header.phase;
  context.reduction = header.reduction;
  context.schedule = header.schedule;
  context.world = header.world;
  context.sender = header.sender;
  context.group_id = header.group_id;
  context.step = header.step;
  context.sequence = header.sequence;
  context.segment = header.segment;
  context.segment_count = header.segment_count;
  context.first_value = header.first_value;
  return context;
}

}  // namespace gradwire::internal
