#include "codec/registry.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "frame/limits.h"

namespace gradwire::internal {
namespace {

TEST(Registry, EntriesAreCompleteAndInOrder) {
  ASSERT_EQ(codec_entries().size(), all_codec_limits().size());
  for (std::size_t i = 0; i < codec_entries().size(); ++i) {
    const CodecEntry& entry = codec_entries()[i];
    const CodecLimits& limits = all_codec_limits()[i];
    EXPECT_EQ(entry.defaults.id, limits.id);
    EXPECT_EQ(entry.kind, limits.kind);
    if (i > 0) {
      EXPECT_LT(all_codec_limits()[i - 1].id, limits.id);
    }
    EXPECT_FALSE(entry.summary.empty() || entry.bound.empty() || entry.parameters.empty());
    EXPECT_FALSE(entry.examples.empty() || entry.keys.empty());
    EXPECT_EQ(entry.encode_block == nullptr, entry.kind == BlockKind::kStored);
    EXPECT_EQ(entry.decode_block == nullptr, entry.kind == BlockKind::kStored);
    EXPECT_TRUE(check_spec(entry.defaults).ok());
    EXPECT_EQ(find_codec(entry.defaults.id), &entry);
    EXPECT_EQ(find_codec(codec_name(entry.defaults.id)), &entry);
  }
  EXPECT_EQ(find_codec(CodecId{255}), nullptr);
  EXPECT_EQ(find_codec("int8"), nullptr);
}

TEST(Registry, DescriptionsMirrorTheEntries) {
  ASSERT_EQ(codecs().size(), codec_entries().size());
  for (std::size_t i = 0; i < codecs().size(); ++i) {
    const CodecDescription& description = codecs()[i];
    const CodecEntry& entry = codec_entries()[i];
    EXPECT_EQ(description.id, entry.defaults.id);
    EXPECT_EQ(description.name, codec_name(entry.defaults.id));
    EXPECT_EQ(description.parameters, entry.parameters);
    EXPECT_EQ(description.bound, entry.bound);
    EXPECT_FALSE(description.dtypes.empty());
    for (const DType dtype : description.dtypes) EXPECT_TRUE(codec_takes(description.id, dtype));
  }
}

TEST(Registry, ExamplesParseToTheirCodecAndDiffer) {
  std::set<std::string> texts;
  for (const CodecDescription& description : codecs()) {
    for (const std::string_view example : description.examples) {
      const Result<CodecSpec> spec = CodecSpec::parse(example);
      ASSERT_TRUE(spec.ok()) << example;
      EXPECT_EQ(spec->id, description.id) << example;
      EXPECT_TRUE(texts.insert(spec->to_string()).second) << example;
    }
  }
}

// Every key that the help text names parses, and the other way round.
TEST(Registry, HelpNamesExactlyTheKeys) {
  for (const CodecEntry& entry : codec_entries()) {
    const std::string name(codec_name(entry.defaults.id));
    const Result<CodecSpec> unknown = CodecSpec::parse(name + ":?=1");
    ASSERT_FALSE(unknown.ok());
    std::string help(entry.parameters);
    std::size_t keys = 0;
    for (std::size_t at = help.find('='); at != std::string::npos; at = help.find('=', at + 1)) {
      const std::size_t begin = help.find_last_of(" ", at);
      const std::string key = help.substr(begin + 1, at - begin - 1);
      EXPECT_NE(unknown.error().message.find(key), std::string::npos) << name << ": " << key;
      ++keys;
    }
    EXPECT_EQ(keys, entry.keys.size()) << name;
  }
}

TEST(Registry, AliasesAreSpecsOfTheRegistry) {
  ASSERT_EQ(codec_aliases().size(), 6u);
  for (const CodecAlias& alias : codec_aliases()) {
    EXPECT_TRUE(check_spec(alias.spec).ok());
    EXPECT_EQ(find_codec(alias.name), nullptr);
    EXPECT_EQ(*CodecSpec::parse(alias.name), alias.spec);
  }
}

}  // namespace
}  // namespace gradwire::internal
