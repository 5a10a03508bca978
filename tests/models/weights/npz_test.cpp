#include "millrace/models/weights/formats.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>

#include "millrace/base/files.h"
#include "tests/models/weights/loader_fixtures.h"

namespace millrace {
namespace {

using testing::by_name;
using testing::npy;
using testing::tensors_equal;
using testing::write_zip;

struct Npz : ::testing::Test {
  const testing::Scratch scratch;
};

std::string floats(int count) {
  std::string bytes(static_cast<std::size_t>(count) * 4, '\0');
  for (int i = 0; i < count; ++i) reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(i);
  return bytes;
}

std::string header(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
}

TEST_F(Npz, ReadsBothVersionsCompressedAndStored) {
  write_zip(scratch / "a.npz", {{"conv0/W.npy", npy(header("<f4", "(2, 3)") + "   \n", floats(6))},
                                {"line.npy", npy(header("<f4", "(5000,)") + "\n", floats(5000), 2)},
                                {"one.npy", npy(header("|u1", "()"), "\x07")},
                                {"none.npy", npy(header("<i8", "(0, 4)"), "")},
                                {"readme.txt", "not an array"}});
  const auto arrays = by_name(read_npz(scratch / "a.npz"));
  ASSERT_EQ(arrays.size(), 4U);
  EXPECT_TRUE(tensors_equal(arrays.at("conv0/W"), at::arange(6, at::kFloat).view({2, 3})));
  EXPECT_TRUE(tensors_equal(arrays.at("line"), at::arange(5000, at::kFloat)));
  EXPECT_TRUE(tensors_equal(arrays.at("one"), at::full({}, 7, at::kByte)));
  EXPECT_EQ(arrays.at("none").sizes(), at::IntArrayRef({0, 4}));
}

TEST_F(Npz, ReadsFortranOrder) {
  write_zip(scratch / "a.npz", {{"a.npy", npy("{'descr': '<f4', 'fortran_order': True, 'shape': "
                                              "(2, 1, 3), }",
                                              floats(6))}});
  const auto read = read_npz(scratch / "a.npz");
  EXPECT_TRUE(tensors_equal(read.at(0).second,
                            at::arange(6, at::kFloat).view({3, 1, 2}).permute({2, 1, 0})));
  EXPECT_TRUE(read.at(0).second.is_contiguous());
}

TEST_F(Npz, ReadsBackWrittenFile) {
  const NamedTensors all = {{"group0/conv/W", at::arange(6, at::kFloat).view({2, 3}).t()},
                            {"h", at::full({3}, 1.5, at::kHalf)},
                            {"b", at::full({2}, true, at::kBool)},
                            {"i", at::arange(2, at::kLong)},
                            {"scalar", at::full({}, 3.5)}};
  write_npz(scratch / "a.npz", all);
  const auto read = read_npz(scratch / "a.npz");
  testing::expect_same(read, by_name(all));
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(read.at(i).first, all[i].first);
  const auto file = scratch / "b.npz";
  MILLRACE_EXPECT_ERROR(write_npz(file, {{"x", at::full({1}, 1, at::kBFloat16)}}), file,
                        "'x': tensors of type BFloat16");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Npz, ReportsInvalidArrays) {
  const auto file = scratch / "bad.npz";
  for (const auto& [why, bytes] : std::vector<std::pair<std::string, std::string>>{
           {".npy", "something else"},
           {"truncated", "\x93NUM"},
           {"header size", npy("", "").substr(0, 8) + "\xff\xff"},
           {"plain array",
            npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234")},
           {"unknown type '|O'", npy(header("|O", "(1,)"), "1234")},
           {"big-endian", npy(header(">f4", "(1,)"), "1234")},
           {"match", npy(header("<f4", "(2,)"), "1234")},
           {"shape and type", npy(header("<f4", "(999999999999999999, 99)"), "")},
           {"integers", npy(header("<f4", "(x,)"), "")},
           {"integers", npy(header("<f4", "(1.5,)"), "")},
           {"integers", npy(header("<f4", "(1 2)"), "")},
           {"too large", npy(header("<f4", "(9999999999999999999,)"), "")},
       }) {
    write_zip(file, {{"x.npy", bytes}});
    MILLRACE_EXPECT_ERROR(read_npz(file), file, why);
    MILLRACE_EXPECT_ERROR(read_npz(file), file, "array 'x'");
  }
}

TEST_F(Npz, ReportsWrongFileFormat) {
  for (const std::string bytes : {"", "\x89PNG\r\n", "PK\x03\x04"}) {
    const auto file = scratch.file("a.npz", bytes);
    MILLRACE_EXPECT_ERROR(read_npz(file), file, "zip archive");
  }
}

TEST_F(Npz, SurvivesDamagedBytes) {
  write_zip(scratch / "whole.npz", {{"a.npy", npy(header("<f4", "(2, 3)"), floats(6))},
                                    {"b.npy", npy(header("<f4", "(2000,)"), floats(2000))}});
  const auto bytes = read_file(scratch / "whole.npz");
  // Damages mostly the headers and the directory at the end, which determine what is read.
  testing::expect_no_crash(scratch, bytes, read_npz, [&](Rng& rng) {
    const auto place = rng.below(300);
    return rng.chance(0.5) ? place : bytes.size() - 1 - place;
  });
}

TEST_F(Npz, ReportsFlippedBitInArray) {
  const auto array = npy(header("<f4", "(5000,)"), floats(5000));
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
  MILLRACE_EXPECT_ERROR(read_npz(file), file, "checksum");
}

}  // namespace
}  // namespace millrace
