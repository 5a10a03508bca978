#include "millrace/models/weights/archive.h"

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace {
namespace {

using UniqueZip = std::unique_ptr<zip_t, decltype(&zip_discard)>;

[[noreturn]] void fail(const std::string& what, zip_error_t& error) {
  const std::string why = zip_error_strerror(&error);
  zip_error_fini(&error);
  throw Error(what + ": " + why);
}

Archive::Entry entry_of(zip_t* archive, zip_uint64_t index) {
  constexpr std::uint64_t kBestDeflate = 1032;  // maximum ratio of deflate
  constexpr auto kNeeded =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  zip_stat_t about;
  if (zip_stat_index(archive, index, 0, &about) != 0 || (about.valid & kNeeded) != kNeeded)
    throw Error("archive entry " + std::to_string(index) + " is damaged");
  const auto fault = [&](const char* what) {
    return Error("archive entry '" + std::string(about.name) + "' " + what);
  };
  if (about.comp_method != ZIP_CM_STORE && about.comp_method != ZIP_CM_DEFLATE)
    throw fault("has an unsupported compression method");
  if (about.size / kBestDeflate > about.comp_size) throw fault("is smaller than declared");
  return {about.name, about.size};
}

}  // namespace

Archive::Archive(const std::filesystem::path& file) : zip_(nullptr, zip_discard) {
  int code = 0;
  zip_.reset(zip_open(file.c_str(), ZIP_RDONLY, &code));
  if (!zip_) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    fail("cannot be read as a zip archive", error);
  }
  constexpr std::uint64_t kMostPacking = 100, kSmall = 1 << 20;
  std::uint64_t left = std::filesystem::file_size(file) * kMostPacking + kSmall;
  const auto count = static_cast<zip_uint64_t>(zip_get_num_entries(zip_.get(), 0));
  for (zip_uint64_t index = 0; index < count; ++index) {
    entries_.push_back(entry_of(zip_.get(), index));
    if (entries_.back().bytes > left)
      throw Error("it would decompress to more than 100 times its size, which weights never do");
    left -= entries_.back().bytes;
  }
}

std::string Archive::read(std::size_t entry) const {
  const std::unique_ptr<zip_file_t, decltype(&zip_fclose)> file(
      zip_fopen_index(zip_.get(), entry, 0), zip_fclose);
  if (!file) throw Error(zip_strerror(zip_.get()));
  std::string bytes(entries_[entry].bytes, '\0');
  for (std::size_t done = 0; done < bytes.size();) {
    const auto got = zip_fread(file.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0) throw Error(zip_file_strerror(file.get()));
    if (got == 0) throw Error("is truncated");
    done += static_cast<std::size_t>(got);
  }
  char beyond = 0;  // libzip compares checksums when it is asked for more than the last byte
  const auto more = zip_fread(file.get(), &beyond, 1);
  if (more > 0) throw Error("is larger than declared");
  if (more == 0) return bytes;
  if (zip_error_code_zip(zip_file_get_error(file.get())) != ZIP_ER_CRC)
    throw Error(zip_file_strerror(file.get()));
  throw Error(
      "checksum mismatch: the file is damaged (or torch saved it without checksums, after "
      "set_crc32_options(False))");
}

void write_archive(const std::filesystem::path& file, const ArchiveParts& members) {
  zip_error_t error;
  zip_error_init(&error);
  const std::unique_ptr<zip_source_t, decltype(&zip_source_free)> memory(
      zip_source_buffer_create(nullptr, 0, 0, &error), zip_source_free);
  if (!memory) fail(file.string(), error);
  zip_source_keep(memory.get());  // the archive takes a reference, too
  UniqueZip archive(zip_open_from_source(memory.get(), ZIP_TRUNCATE, &error), zip_discard);
  if (!archive) {
    zip_source_free(memory.get());
    fail(file.string(), error);
  }
  for (const auto& [name, bytes] : members) {
    auto* source = zip_source_buffer(archive.get(), bytes.data(), bytes.size(), 0);
    const auto index = zip_file_add(archive.get(), name.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      throw Error(file.string() + ": '" + name + "': " + zip_strerror(archive.get()));
    }
    constexpr zip_uint16_t kFirstOf1980 = 1 << 5 | 1;  // a fixed date, for the same bytes
    const auto place = static_cast<zip_uint64_t>(index);
    zip_set_file_compression(archive.get(), place, ZIP_CM_STORE, 0);
    zip_file_set_dostime(archive.get(), place, 0, kFirstOf1980, 0);
  }
  if (zip_close(archive.get()) != 0)
    throw Error(file.string() + ": " + zip_strerror(archive.get()));
  archive.release();

  zip_stat_t about;
  std::string bytes;
  if (zip_source_open(memory.get()) == 0 && zip_source_stat(memory.get(), &about) == 0) {
    bytes.resize(about.size);
    if (zip_source_read(memory.get(), bytes.data(), bytes.size()) !=
        static_cast<zip_int64_t>(bytes.size()))
      throw Error(file.string() + ": cannot create the archive");
    zip_source_close(memory.get());
  }
  write_file_atomically(file, bytes);
}

}  // namespace millrace
