#include "millrace/dataflow/store/lmdb_file.h"

#include <fmt/format.h>
#include <lmdb.h>

#include <memory>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

using UniqueTransaction = std::unique_ptr<MDB_txn, decltype([](MDB_txn* t) { mdb_txn_abort(t); })>;

constexpr unsigned kReaders = 1024;  // transactions at once, over all processes
constexpr unsigned kFlags = MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD;

MDB_val value_of(std::string_view bytes) { return {bytes.size(), const_cast<char*>(bytes.data())}; }

}  // namespace

LmdbFile::LmdbFile(std::filesystem::path file, std::size_t map_bytes) : file_(std::move(file)) {
  check(mdb_env_create(&env_), "cannot be opened");
  try {
    check(mdb_env_set_maxreaders(env_, kReaders), "cannot be opened");
    check(mdb_env_set_mapsize(env_, map_bytes), "cannot be opened");
    check(mdb_env_open(env_, file_.c_str(), kFlags, 0644), "cannot be opened");
    check_length();
    MDB_txn* raw = nullptr;
    check(mdb_txn_begin(env_, nullptr, 0, &raw), "cannot be read");
    UniqueTransaction transaction(raw);
    check(mdb_dbi_open(raw, nullptr, 0, &table_), "cannot be read");
    check(mdb_txn_commit(transaction.release()), "cannot be read");
  } catch (...) {
    mdb_env_close(env_);
    throw;
  }
}

LmdbFile::~LmdbFile() { mdb_env_close(env_); }

bool LmdbFile::find(std::string_view key, const std::function<void(std::string_view)>& see) const {
  MDB_txn* raw = nullptr;
  check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &raw), "cannot be read");
  const UniqueTransaction transaction(raw);
  auto wanted = value_of(key);
  MDB_val found;
  const int status = mdb_get(raw, table_, &wanted, &found);
  if (status == MDB_NOTFOUND) return false;
  check(status, "cannot be read");
  see({static_cast<const char*>(found.mv_data), found.mv_size});
  return true;
}

bool LmdbFile::put(std::span<const std::pair<std::string, std::string_view>> pairs) {
  MDB_txn* raw = nullptr;
  check(mdb_txn_begin(env_, nullptr, 0, &raw), "cannot be written");
  UniqueTransaction transaction(raw);
  for (const auto& [key, value] : pairs) {
    auto name = value_of(key);
    auto content = value_of(value);
    const int status = mdb_put(raw, table_, &name, &content, 0);
    if (status == MDB_MAP_FULL) return false;
    check(status, "cannot be written");
  }
  const int status = mdb_txn_commit(transaction.release());
  if (status == MDB_MAP_FULL) return false;
  check(status, "cannot be written");
  return true;
}

void LmdbFile::check_length() const {
  const auto length = std::filesystem::file_size(file_);
  if (length == 0) return;  // new
  MDB_envinfo info;
  MDB_stat stat;
  check(mdb_env_info(env_, &info), "cannot be read");
  check(mdb_env_stat(env_, &stat), "cannot be read");
  if (const auto used = (info.me_last_pgno + 1) * stat.ms_psize; length < used)
    throw Error(fmt::format("{}: has been cut short: it is {} bytes, but {} of it are in use",
                            file_.string(), length, used));
}

void LmdbFile::check(int status, std::string_view what) const {
  if (status != MDB_SUCCESS)
    throw Error(fmt::format("{}: {}: {}", file_.string(), what, mdb_strerror(status)));
}

}  // namespace millrace
