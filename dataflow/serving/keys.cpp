#include "millrace/dataflow/serving/keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <zmq.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace::serving {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kDigits = 40;
using Key = std::array<char, kDigits + 1>;

void write_new(const fs::path& file, const Key& key, mode_t mode) {
  const UniqueFd out(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!out)
    throw Error(fmt::format(
        "{}: cannot create: {}", file.string(),
        errno == EEXIST ? "already exists, and keys are never overwritten" : std::strerror(errno)));
  write_all(out, std::string(key.data()) + "\n", file);
}

std::string read_key(const fs::path& file, const char* kind) {
  std::string text;
  try {
    text = read_file(file, {.max_bytes = 4096});
  } catch (const Error& problem) {
    throw ConfigError(problem.what());
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  std::array<std::uint8_t, 32> bytes{};
  if (text.size() != kDigits || !zmq_z85_decode(bytes.data(), text.c_str()))
    throw ConfigError(fmt::format(
        "{}: is not a {} key of {} characters; make a pair with `trainer serve --keygen NAME`",
        file.string(), kind, kDigits));
  return text;
}

}  // namespace

void make_keys(const fs::path& name) {
  Key open{}, secret{};
  if (zmq_curve_keypair(open.data(), secret.data()) != 0)
    throw Error("cannot make keys: this libzmq is built without CURVE");
  write_new(name.string() + ".key", secret, 0600);
  write_new(name.string() + ".pub", open, 0644);
}

KeyPair read_secret_key(const fs::path& file) {
  auto secret = read_key(file, "secret");
  struct stat state {};
  if (::stat(file.c_str(), &state) == 0 && (state.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw ConfigError(
        fmt::format("{0}: other users can read this secret key; run chmod 600 {0}", file.string()));
  Key open{};
  if (zmq_curve_public(open.data(), secret.c_str()) != 0)
    throw ConfigError(fmt::format("{}: not a secret key", file.string()));
  return {open.data(), std::move(secret)};
}

std::string read_public_key(const fs::path& file) { return read_key(file, "public"); }

std::set<std::string> read_public_keys(const std::vector<std::string>& paths) {
  std::set<std::string> keys;
  for (const std::filesystem::path path : paths) {
    if (!std::filesystem::is_directory(path)) {
      keys.insert(read_public_key(path));
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == ".pub") keys.insert(read_public_key(entry.path()));
  }
  return keys;
}

}  // namespace millrace::serving
