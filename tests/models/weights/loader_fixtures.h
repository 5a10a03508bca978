// Helpers for tests of weights files: files written by torch, and files made byte by byte.
#pragma once

#include <zip.h>

#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>

#include "millrace/base/random.h"
#include "millrace/models/weights/safetensors.h"
#include "tests/support/scratch.h"
#include "tests/support/tensors.h"

namespace millrace::testing {

inline const std::filesystem::path kFixtures = "tests/parity/goldens/loader";

using TensorsByName = std::map<std::string, at::Tensor>;

inline TensorsByName by_name(const NamedTensors& tensors) {
  return {tensors.begin(), tensors.end()};
}

inline void expect_same(const NamedTensors& actual, const TensorsByName& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  for (const auto& [name, value] : actual) {
    ASSERT_TRUE(expected.contains(name)) << name;
    EXPECT_TRUE(tensors_equal(value, expected.at(name))) << name;
  }
}

/// Changes three bytes at offsets drawn by `place(rng)`; expects `read` to return values or throw
/// an Error that names the file. Repeats this 1000 times.
template <class Read, class Place>
void expect_no_crash(const Scratch& scratch, const std::string& bytes, Read read, Place place) {
  Rng rng{1};
  for (int round = 0; round < 1000; ++round) {
    auto damaged = bytes;
    for (int i = 0; i < 3; ++i) {
      const auto at = place(rng);
      damaged[at] = static_cast<char>(rng.below(256));
    }
    try {
      read(scratch.file("damaged", damaged));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("damaged"));
    }
  }
}

/// Returns a .npy file with this header, in version 1 or 2 of the format.
inline std::string npy(const std::string& header, const std::string& data, char version = 1) {
  return std::string("\x93NUMPY") + version + '\0' +
         little_endian(header.size(), version == 1 ? 2 : 4) + header + data;
}

inline void write_zip(const std::filesystem::path& file,
                      const std::map<std::string, std::string>& members) {
  zip_t* archive = zip_open(file.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  if (!archive) throw std::runtime_error("zip_open");
  for (const auto& [name, bytes] : members)
    zip_file_add(archive, name.c_str(), zip_source_buffer(archive, bytes.data(), bytes.size(), 0),
                 0);
  if (zip_close(archive) != 0) throw std::runtime_error("zip_close");
}

}  // namespace millrace::testing
