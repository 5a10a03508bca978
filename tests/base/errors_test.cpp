#include "millrace/base/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

const ComponentName kOwn{"callback", "hello"}, kOfPlugin{"callback", "hello", "hello.so"};

TEST(WithComponentName, ReturnsResultOfWork) {
  EXPECT_EQ(with_component_name(kOwn, "describe", [] { return 7; }), 7);
}

TEST(WithComponentName, PrependsComponentAndFunction) {
  const auto fails = [] { throw std::out_of_range("too far"); };
  EXPECT_THAT([&] { with_component_name(kOwn, "after_step", fails); },
              ThrowsMessage<Error>("callback 'hello' failed in after_step: too far"));
  EXPECT_THAT([&] { with_component_name(kOfPlugin, "after_step", fails); },
              ThrowsMessage<Error>("callback 'hello' of hello.so failed in after_step: too far"));
}

TEST(WithComponentName, NamesComponentIfIntegerIsThrown) {
  EXPECT_THAT([] { with_component_name(kOwn, "describe", [] { throw 7; }); },
              ThrowsMessage<Error>(AllOf(StartsWith("callback 'hello' failed in describe: "),
                                         HasSubstr("std::exception"))));
}

TEST(WithComponentName, AddsPluginToConfigError) {
  const auto refuses = [] { throw ConfigError("a.toml:3:1: no such key"); };
  EXPECT_THAT([&] { with_component_name(kOwn, "create", refuses); },
              ThrowsMessage<ConfigError>("a.toml:3:1: no such key"));
  EXPECT_THAT([&] { with_component_name(kOfPlugin, "create", refuses); },
              ThrowsMessage<ConfigError>("callback 'hello' of hello.so: a.toml:3:1: no such key"));
}

TEST(Sentence, OmitsLibtorchStackTrace) {
  const std::string stack =
      "\nException raised from index_select_out_cpu_ at Indexing.cpp:1 (most recent call first):\n"
      "frame #0: c10::Error::Error\nframe #1: <unknown function>\n";
  EXPECT_EQ(sentence_of("index out of range in self" + stack), "index out of range in self");
  EXPECT_EQ(sentence_of("two lines\nwithout a stack"), "two lines\nwithout a stack");
  const auto of_cuda = sentence_of(
      "CUDA error: device-side assert triggered\nSearch for `cudaErrorAssert' in the manual\n"
      "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n" +
      stack);
  EXPECT_TRUE(of_cuda.starts_with("CUDA error: device-side assert triggered ("));
  EXPECT_EQ(of_cuda.find('\n'), of_cuda.npos);
  EXPECT_EQ(sentence_of(of_cuda), of_cuda) << "a shortened message must not change";
  EXPECT_THAT(
      [&] {
        with_component_name(kOwn, "before_step", [&] { throw std::logic_error("bad" + stack); });
      },
      ThrowsMessage<Error>("callback 'hello' failed in before_step: bad"));
}

TEST(Sentence, ReportsSizeOfFailedAllocation) {
  const auto said = sentence_of(
      "detect: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate "
      "memory: you tried to allocate 3145728 bytes. Error code 12 (Cannot allocate memory)\n"
      "frame #0: c10::ThrowEnforceNotMet + 0x6a\nframe #1: main\n");
  EXPECT_THAT(said, AllOf(StartsWith("detect: out of memory: "), HasSubstr("3 MiB")));
  EXPECT_EQ(sentence_of(std::bad_alloc().what()), "out of memory");
}

TEST(Sentence, OmitsJsonLibraryTags) {
  EXPECT_EQ(sentence_of("a.json: [json.exception.parse_error.101] parse error at line 1"),
            "a.json: parse error at line 1");
  const std::string cut = "'[json.exception.parse_error";  // a tag that is cut off
  EXPECT_EQ(sentence_of(cut), cut);
}

}  // namespace
}  // namespace millrace
