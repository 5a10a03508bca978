// CurveZMQ keys in files of 40 characters (Z85): the secret key in NAME.key, its public key in
// NAME.pub.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace millrace::serving {

struct KeyPair {
  std::string public_key, secret_key;  // Z85
};

/// The keys of a consumer.
struct LinkKeys {
  std::string server;  // public key that the server must prove to own
  KeyPair own;
};

/// Creates a key pair: `name`.key, which only its owner may read, and `name`.pub. Throws Error if a
/// file exists or cannot be written.
void make_keys(const std::filesystem::path& name);

/// Reads a secret key and derives the pair. Throws ConfigError if the file is not a secret key, or
/// other users may read it.
KeyPair read_secret_key(const std::filesystem::path& file);
/// Reads a public key. Throws ConfigError if the file is not one.
std::string read_public_key(const std::filesystem::path& file);
/// Reads the public keys in files, and in all .pub files of folders.
std::set<std::string> read_public_keys(const std::vector<std::string>& paths);

}  // namespace millrace::serving
