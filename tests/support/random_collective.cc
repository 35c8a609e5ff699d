#include "support/random_collective.h"

#include "support/all_reduce_model.h"
#include "support/codec_cases.h"
#include "support/thread_ranks.h"

namespace gradwire::testing {

std::size_t CollectiveCase::values() const {
  std::size_t count = 0;
  for (const PartLayout& part : parts) count += part.values;
  return count;
}

std::string CollectiveCase::text() const {
  std::string text = "world " + std::to_string(world) + ", " + std::string(dtype_name(dtype)) +
                     ", " + options.codec.to_string() + ", segments of " +
                     std::to_string(group.segment_bytes) + ", parts";
  for (const PartLayout& part : parts) text.append(" ").append(std::to_string(part.values));
  return text;
}

CollectiveCase random_collective(std::mt19937_64& random) {
  static const std::vector<test::CodecCase> codecs = test::floating_cases();
  CollectiveCase wanted;
  wanted.world = 1 + static_cast<int>(random() % 8);
  const test::CodecCase& codec = codecs[random() % codecs.size()];
  wanted.options.codec = CodecSpec::parse(codec.spec).value();
  wanted.dtype = codec.dtype;
  wanted.options.reduction = random() % 2 == 0 ? Reduction::kSum : Reduction::kAvg;
  wanted.options.step = random() % 1000;
  wanted.options.measure_error = random() % 2 == 0;
  wanted.specials = random() % 2 == 0;
  // Small segments, so that pipelines are deep and cuts frequent.
  wanted.group.segment_bytes = 2048 + static_cast<std::uint32_t>(random() % 30000);
  const std::size_t part_count = random() % 40;
  for (std::size_t p = 0; p < part_count; ++p) {
    const std::uint64_t sizes[] = {0, 1, random() % 600, random() % 3000, 256 * (random() % 8)};
    wanted.parts.push_back({sizes[random() % 5], static_cast<std::uint32_t>(random() % 100),
                            random() % 4 == 0 ? random() % 1000 : 0});
  }
  if (wanted.parts.empty()) wanted.parts.push_back({random() % 5000, 0, 0});
  return wanted;
}

std::string collective_violation(const CollectiveCase& wanted, std::mt19937_64& random) {
  std::vector<Bytes> tensors;
  for (int rank = 0; rank < wanted.world; ++rank) {
    tensors.push_back(random_tensor(random, wanted.dtype, wanted.values(), wanted.specials));
  }
  const Bytes expected = model_all_reduce(tensors, wanted.dtype, wanted.parts, wanted.options,
                                          wanted.group.segment_bytes);
  const auto communicators = make_communicators(wanted.world, wanted.group);
  const auto outcomes =
      all_reduce_ranks(communicators, tensors, wanted.dtype, wanted.parts, wanted.options);
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    const Status& status = outcomes[rank].status;
    const std::string at = wanted.text() + ": rank " + std::to_string(rank) + ": ";
    if (!status.ok()) return at + status.error().to_string();
    const std::string difference = first_difference(tensors[rank], expected);
    if (difference != "same") return at + "differs at byte " + difference;
  }
  return {};
}

}  // namespace gradwire::testing
