// CurveZMQ keys in files of 40 characters (Z85): the secret one in NAME.key, its public in
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

/// A consumer's keys.
struct LinkKeys {
  std::string server;  // the public key that the server must prove to have
  KeyPair own;
};

/// Makes a key pair: `name`.key, which only its owner may read, and `name`.pub. Throws Error if one
/// exists or cannot be written.
void make_keys(const std::filesystem::path& name);

/// The pair of a secret key in a file. Throws ConfigError if the file is not a secret key, or other
/// users may read it.
KeyPair read_secret_key(const std::filesystem::path& file);
/// Throws ConfigError if the file is not a public key.
std::string read_public_key(const std::filesystem::path& file);
/// Those of files, and of all .pub files of folders.
std::set<std::string> read_public_keys(const std::vector<std::string>& paths);

}  // namespace millrace::serving
