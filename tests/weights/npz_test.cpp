#include "millrace/weights/npz.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include "millrace/base/files.h"
#include "millrace/base/random.h"
#include "tests/support/tensors.h"
#include "tests/weights/zip_file.h"

namespace millrace {
namespace {

using testing::npy;
using testing::same;
using testing::Scratch;
using testing::write_zip;

std::string floats(int count) {
  std::string bytes(static_cast<std::size_t>(count) * 4, '\0');
  for (int i = 0; i < count; ++i) reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(i);
  return bytes;
}

TEST(Npz, ReadsArraysOfBothVersionsPackedAndNot) {
  const Scratch scratch;
  write_zip(scratch / "a.npz",
            {{"conv0/W.npy",
              npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", floats(6))},
             {"line.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5000,), }\n",
                              floats(5000), 2)},
             {"one.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "\x07")},
             {"none.npy", npy("{'descr': '<i8', 'fortran_order': False, 'shape': (0, 4), }", "")},
             {"readme.txt", "no array"}});
  const auto read = read_npz(scratch / "a.npz");
  const std::map<std::string, at::Tensor> arrays(read.begin(), read.end());
  ASSERT_EQ(arrays.size(), 4U);
  EXPECT_TRUE(same(arrays.at("conv0/W"), at::arange(6, at::kFloat).view({2, 3})));
  EXPECT_TRUE(same(arrays.at("line"), at::arange(5000, at::kFloat)));
  EXPECT_TRUE(same(arrays.at("one"), at::full({}, 7, at::kByte)));
  EXPECT_EQ(arrays.at("none").sizes(), at::IntArrayRef({0, 4}));
}

TEST(Npz, WritesWhatItReads) {
  const Scratch scratch;
  const NamedTensors all = {{"group0/conv/W", at::arange(6, at::kFloat).view({2, 3}).t()},
                            {"h", at::full({3}, 1.5, at::kHalf)},
                            {"b", at::full({2}, true, at::kBool)},
                            {"i", at::arange(2, at::kLong)},
                            {"scalar", at::full({}, 3.5)}};
  write_npz(scratch / "a.npz", all);
  const auto read = read_npz(scratch / "a.npz");
  ASSERT_EQ(read.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(read[i].first, all[i].first);
    EXPECT_TRUE(same(read[i].second, all[i].second)) << all[i].first;
  }
  const auto file = scratch / "b.npz";
  MILLRACE_EXPECT_ERROR(write_npz(file, {{"x", at::full({1}, 1, at::kBFloat16)}}), file,
                        "'x': tensors of type BFloat16 cannot be stored");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(Npz, SaysWhatIsWrongWithAnArray) {
  const Scratch scratch;
  const auto file = scratch / "bad.npz";
  for (const auto& [why, bytes] : std::map<std::string, std::string>{
           {"it is no .npy array", "something else"},
           {"ends too early", "\x93NUM"},
           {"its header would take", npy("", "").substr(0, 8) + "\xff\xff"},
           {"its header is not a plain",
            npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234")},
           {"Fortran order",
            npy("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "1234")},
           {"unknown type '|O'",
            npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "1234")},
           {"unknown type '>f4'",
            npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "1234")},
           {"do not match",
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234")},
           {"shape and type",
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999999999, 99), }",
                "")},
           {"too large",
            npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999,), }", "")},
       }) {
    write_zip(file, {{"x.npy", bytes}});
    MILLRACE_EXPECT_ERROR(read_npz(file), file, why);
    MILLRACE_EXPECT_ERROR(read_npz(file), file, "array 'x'");
  }
}

TEST(Npz, SaysThatAFileIsSomethingElse) {
  const Scratch scratch;
  for (const std::string bytes : {"", "\x89PNG\r\n", "PK\x03\x04"}) {
    const auto file = scratch.file("a.npz", bytes);
    MILLRACE_EXPECT_ERROR(read_npz(file), file, "cannot be read as a zip archive");
  }
}

TEST(Npz, DamageIsAnErrorOrOtherValuesButNeverACrash) {
  const Scratch scratch;
  write_zip(
      scratch / "whole.npz",
      {{"a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", floats(6))},
       {"b.npy",
        npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2000,), }", floats(2000))}});
  const auto bytes = read_file(scratch / "whole.npz");
  Rng rng{1};
  for (int round = 0; round < 1000; ++round) {
    auto damaged = bytes;
    for (int i = 0; i < 3; ++i) {
      // Mostly in the headers and in the directory at the end, which decide where to read.
      const auto place = rng.below(300);
      damaged[rng.chance(0.5) ? place : damaged.size() - 1 - place] =
          static_cast<char>(rng.below(256));
    }
    try {
      read_npz(scratch.file("damaged.npz", damaged));
    } catch (const Error&) {
    }
  }
}

TEST(Npz, NoticesAFlippedBitInAnyArrayPackedOrNot) {
  const Scratch scratch;
  const auto array =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5000,), }\n", floats(5000));
  write_npz(scratch / "stored.npz", {{"line", at::arange(5000, at::kFloat)}});
  write_zip(scratch / "packed.npz", {{"line.npy", array}});
  for (const auto* name : {"stored.npz", "packed.npz"}) {
    auto bytes = read_file(scratch / name);
    ASSERT_EQ(read_npz(scratch / name).size(), 1U);
    bytes[bytes.size() / 2] ^= 1;  // in the middle of the values
    const auto file = scratch.file("damaged.npz", bytes);
    MILLRACE_EXPECT_ERROR(read_npz(file), file, "array 'line': ");
  }
  const auto file = scratch / "damaged.npz";
  auto stored = read_file(scratch / "stored.npz");
  stored[stored.size() / 2] ^= 64;
  scratch.file("damaged.npz", stored);
  MILLRACE_EXPECT_ERROR(read_npz(file), file, "do not have the checksum");
}

}  // namespace
}  // namespace millrace
