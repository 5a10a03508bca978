#include "millrace/dataflow/store/remote/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/disk/spool.h"
#include "millrace/base/events/event_ring.h"
#include "millrace/base/files.h"
#include "millrace/base/own_folders.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/store/remote/http/http.h"
#include "millrace/dataflow/store/remote/range_cache.h"
#include "millrace/dataflow/store/remote/s3_place.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kConnections = 16;
constexpr std::uint64_t kMostAhead = 256 << 20;         // bytes prefetched and not yet taken
constexpr double kFirstPause = 0.2, kLongestPause = 8;  // seconds between attempts
constexpr int kMostWrong = 3;                           // maximum attempts that return wrong bytes
constexpr long kStallTimeout = 10;                      // seconds; see HttpRequest

using SharedText = std::shared_ptr<const std::string>;

/// A requested part of a file.
struct Part {
  std::string url;
  std::uint64_t file_bytes = 0;  // 0 = unknown
  ByteRange range;

  std::string key() const { return fmt::format("{} {} {}", url, range.begin, range.size); }
  std::string text() const {
    return fmt::format("{}: bytes {} to {}", url, range.begin, range.begin + range.size - 1);
  }
};

/// The result of an attempt.
struct Outcome {
  enum { good, again, wrong, over, missing } kind = good;
  std::string why;
};

/// Returns the first words of an error page, without tags.
std::string page_text(std::string_view page) {
  std::string text;
  bool in_tag = false;
  for (const char c : page.substr(0, 600)) {
    if (c == '<') in_tag = true;
    if (!in_tag) text += std::isspace(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
    if (c == '>') {
      in_tag = false;
      if (!text.empty() && text.back() != ' ') text += ' ';
    }
  }
  return text.substr(0, 200);
}

Outcome outcome_of(const HttpAnswer& answer, const Part& part) {
  const auto status = answer.status;
  if (status == 404 || status == 410) return {Outcome::missing, fmt::format("HTTP {}", status)};
  if (status == 408 || status == 429 || status >= 500)
    return {Outcome::again, fmt::format("HTTP {} {}", status, page_text(answer.body))};
  if (status == 200) return {Outcome::over, "the server does not support range requests"};
  if (status == 416)
    return {Outcome::over, "the file does not have these bytes; it is not the one that was packed"};
  if (status >= 300 && status < 400)
    return {Outcome::over,
            fmt::format("HTTP {}: {}", status,
                        answer.problem.empty()
                            ? "a signed request cannot be redirected; set AWS_REGION or "
                              "AWS_ENDPOINT_URL to the location of the bucket"
                            : answer.problem)};
  if (status >= 400 || (status > 0 && status < 200))
    return {Outcome::over, fmt::format("HTTP {} {}", status, page_text(answer.body))};
  if (!answer.problem.empty()) return {Outcome::again, answer.problem};
  if (part.file_bytes > 0 && answer.file_bytes > 0 && answer.file_bytes != part.file_bytes)
    return {Outcome::over, fmt::format("the file has {} bytes, but {} were packed",
                                       answer.file_bytes, part.file_bytes)};
  if (answer.end == 0) return {Outcome::over, "the server did not report which bytes it sent"};
  if (answer.begin != part.range.begin || answer.end > part.range.begin + part.range.size)
    return {Outcome::over,
            fmt::format("the server sent bytes {} to {}", answer.begin, answer.end - 1)};
  if (answer.body.size() != part.range.size)
    return {Outcome::again, fmt::format("received {} bytes", answer.body.size())};
  if (part.range.valid && !part.range.valid(answer.body))
    return {Outcome::wrong, "checksum mismatch"};
  return {};
}

class Fetcher final : public Remote, public std::enable_shared_from_this<Fetcher> {
 public:
  explicit Fetcher(const RemoteReading& reading)
      : timeout_(reading.timeout), get_(http_get()), account_(S3Account::of_environment()) {
    if (!reading.cache.empty()) cache_.emplace(reading.cache, reading.cache_bytes);
    spool_folder_ = reading.cache.empty() ? fs::temp_directory_path() : reading.cache;
  }

  ~Fetcher() override {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  std::unique_ptr<ByteSource> file(const std::string& url,
                                   std::optional<std::uint64_t> size) override;

  /// Returns the part at once. Throws as Remote::file.
  SharedText take(const Part& part) {
    std::unique_lock lock(mutex_);
    const auto found = jobs_.find(part.key());
    if (found == jobs_.end()) {
      lock.unlock();
      return fetch(part);
    }
    const auto job = found->second;
    if (job->state == Job::waiting) {
      forget(part.key());
      lock.unlock();
      return fetch(part);
    }
    changed_.wait(lock, [&] { return job->state == Job::done; });
    forget(part.key());
    if (job->failure) std::rethrow_exception(job->failure);
    return job->bytes;
  }

  /// Queues the part to be prefetched.
  void expect(Part part) {
    const std::scoped_lock lock(mutex_);
    auto key = part.key();
    if (stop_ || jobs_.contains(key)) return;
    while (ahead_ + part.range.size > kMostAhead)
      if (!forget_oldest()) return;
    if (threads_.size() < kConnections) threads_.emplace_back([this] { work(); });
    ahead_ += part.range.size;
    queue_.push_back(key);
    jobs_.emplace(std::move(key), std::make_shared<Job>(Job{std::move(part)}));
    changed_.notify_all();
  }

  /// Asks the server for the length of a file.
  std::uint64_t size_of(const std::string& url) {
    std::uint64_t size = 0;
    fetch({url, 0, {0, 1}}, &size);
    if (size == 0) throw Error(url + ": the server did not report its size");
    return size;
  }

  const fs::path& spool_folder() const { return spool_folder_; }

 private:
  struct Job {
    Part part;
    enum { waiting, running, done } state = waiting;
    SharedText bytes = {};
    std::exception_ptr failure = {};
  };

  /// REQUIRES: the lock.
  void forget(const std::string& key) {
    const auto found = jobs_.find(key);
    if (found == jobs_.end()) return;
    ahead_ -= found->second->part.range.size;
    jobs_.erase(found);
    std::erase(queue_, key);
    std::erase(finished_, key);
  }

  /// Drops the oldest prefetched part that was not taken. REQUIRES: the lock.
  bool forget_oldest() {
    if (finished_.empty()) return false;
    forget(std::string(finished_.front()));
    return true;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
      if (stop_) return;
      const auto key = queue_.front();
      queue_.pop_front();
      const auto job = jobs_.at(key);
      job->state = Job::running;
      lock.unlock();
      try {
        job->bytes = fetch(job->part);
      } catch (...) {
        job->failure = std::current_exception();
      }
      lock.lock();
      job->state = Job::done;
      if (jobs_.contains(key)) finished_.push_back(key);
      changed_.notify_all();
    }
  }

  SharedText fetch(const Part& part, std::uint64_t* file_bytes = nullptr) {
    const bool kept = cache_ && part.range.valid;
    if (kept) {
      if (auto bytes = cache_->get(part.key())) {
        if (bytes->size() == part.range.size && part.range.valid(*bytes))
          return std::make_shared<const std::string>(std::move(*bytes));
        cache_->remove(part.key());
      }
    }
    auto answer = ask(part);
    if (file_bytes) *file_bytes = answer.file_bytes;
    if (kept) cache_->put(part.key(), answer.body);
    return std::make_shared<const std::string>(std::move(answer.body));
  }

  HttpAnswer ask(const Part& part) {
    const auto start = Clock::now();
    double pause = kFirstPause;
    for (int attempt = 1, wrong = 0;; ++attempt) {
      auto answer = get_(request_for(part, timeout_ - seconds_since(start)));
      const auto [kind, why] = outcome_of(answer, part);
      if (kind == Outcome::good) {
        if (!part.range.valid) check_version(part, answer.version);
        return answer;
      }
      if (stop_) throw Error(part.text() + ": reading was stopped");
      if (kind == Outcome::missing)
        throw FileNotFound(fmt::format("{}: not found: {}", part.url, why));
      const auto text =
          fmt::format("{}: {} after {} in {}", part.text(), why, counted(attempt, "attempt"),
                      duration_text(seconds_since(start)));
      if (kind == Outcome::over) throw Error(text);
      if (kind == Outcome::wrong && ++wrong == kMostWrong) throw DataError(text);
      if (seconds_since(start) + pause > timeout_)
        throw Error(text + "; check the server and the network, then resume");
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, std::chrono::duration<double>(pause), [&] { return stop_.load(); });
      pause = std::min(2 * pause, kLongestPause);
    }
  }

  /// Throws Error if another part of the file has another version.
  void check_version(const Part& part, const std::string& version) {
    if (version.empty()) return;
    const std::scoped_lock lock(mutex_);
    const auto& first = versions_.emplace(part.url, version).first->second;
    if (first != version)
      throw Error(fmt::format("{}: changed during reading: its version was {} and is now {}",
                              part.text(), first, version));
  }

  HttpRequest request_for(const Part& part, double seconds_left) const {
    HttpRequest request{
        .url = part.url,
        .begin = part.range.begin,
        .size = part.range.size,
        .stall_timeout = std::clamp(static_cast<long>(timeout_ / 4), 1L, kStallTimeout),
        .timeout = std::max(seconds_left, 0.1),
        .stop = &stop_};
    if (!part.url.starts_with("s3://")) return request;
    request.url = s3_url(part.url, account_);
    request.keys = account_.keys;
    return request;
  }

  const double timeout_;
  HttpGet& get_;
  const S3Account account_;
  std::optional<RangeCache> cache_;
  fs::path spool_folder_;

  std::mutex mutex_;  // guards the members below, except for reading stop_
  std::condition_variable changed_;
  std::atomic<bool> stop_ = false;
  std::map<std::string, std::shared_ptr<Job>> jobs_;
  std::deque<std::string> queue_, finished_;  // keys
  std::uint64_t ahead_ = 0;
  std::map<std::string, std::string> versions_;  // by URL
  std::vector<std::thread> threads_;
};

/// The first bytes of a remote file in an unnamed file, which no process can truncate.
class Spooled final : public ByteSource {
 public:
  Spooled(std::string name, SharedBytes bytes) : name_(std::move(name)), bytes_(std::move(bytes)) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return bytes_.size; }
  HeldBytes read(const ByteRange& range) const override {
    return {bytes_.data,
            {reinterpret_cast<const char*>(bytes_.data.get()) + range.begin, range.size}};
  }
  std::unique_ptr<const ByteSource> local(std::span<const ByteRange>) const override {
    return std::make_unique<Spooled>(*this);
  }

 private:
  std::string name_;
  SharedBytes bytes_;
};

class RemoteFile final : public ByteSource {
 public:
  RemoteFile(std::shared_ptr<Fetcher> fetcher, std::string url, std::uint64_t size)
      : fetcher_(std::move(fetcher)), url_(std::move(url)), size_(size) {}

  const std::string& name() const override { return url_; }
  std::uint64_t size() const override { return size_; }

  HeldBytes read(const ByteRange& range) const override {
    Event event(EventKind::file, "fetch", url_);
    event.set_bytes(static_cast<std::int64_t>(range.size));
    const auto bytes = range.size == 0 ? std::make_shared<const std::string>()
                                       : fetcher_->take({url_, size_, range});
    return {bytes, *bytes};
  }

  std::unique_ptr<const ByteSource> local(std::span<const ByteRange> ranges) const override {
    constexpr std::size_t kAhead = 8;
    Spool spool(fetcher_->spool_folder());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      for (std::size_t k = i + 1; k < std::min(i + kAhead, ranges.size()); ++k) expect(ranges[k]);
      spool.add(read(ranges[i]).bytes);
    }
    return std::make_unique<Spooled>(url_, spool.mapped());
  }

  void expect(const ByteRange& range) const override try {
    if (range.size > 0) fetcher_->expect({url_, size_, range});
  } catch (const std::exception&) {  // no thread or no memory; `read` fetches it
  }

 private:
  const std::shared_ptr<Fetcher> fetcher_;
  const std::string url_;
  const std::uint64_t size_;
};

std::unique_ptr<ByteSource> Fetcher::file(const std::string& url,
                                          std::optional<std::uint64_t> size) {
  if (has_credentials(url)) throw ConfigError(std::string("a URL ") + kNoCredentials);
  return std::make_unique<RemoteFile>(shared_from_this(), url, size ? *size : size_of(url));
}

/// See in_large_pieces.
class Pieces final : public ByteSource {
 public:
  explicit Pieces(std::unique_ptr<ByteSource> file) : file_(std::move(file)) {}

  const std::string& name() const override { return file_->name(); }
  std::uint64_t size() const override { return file_->size(); }

  HeldBytes read(const ByteRange& range) const override {
    const auto first = range.begin / kPiece, last = (range.begin + range.size - 1) / kPiece;
    if (range.size == 0) return {};
    if (first == last) {
      const auto piece = this->piece(first);
      return {piece.owner, piece.bytes.substr(range.begin - first * kPiece, range.size)};
    }
    auto joined = std::make_shared<std::string>();
    for (auto k = first; k <= last; ++k) {
      const auto begin = k == first ? range.begin - first * kPiece : 0;
      *joined += piece(k).bytes.substr(begin, range.size - joined->size());
    }
    return {joined, *joined};
  }
  std::unique_ptr<const ByteSource> local(std::span<const ByteRange> ranges) const override {
    return file_->local(ranges);
  }

 private:
  static constexpr std::uint64_t kPiece = 8 << 20;

  ByteRange range_of(std::uint64_t k) const {
    return {k * kPiece, std::min(kPiece, size() - k * kPiece)};
  }
  HeldBytes piece(std::uint64_t k) const {
    if (!piece_.owner || k != number_) {
      piece_ = file_->read(range_of(k));
      number_ = k;
      if ((k + 1) * kPiece < size()) file_->expect(range_of(k + 1));
    }
    return piece_;
  }

  const std::unique_ptr<ByteSource> file_;
  mutable HeldBytes piece_;
  mutable std::uint64_t number_ = 0;
};

}  // namespace

HttpGet& http_get() {
  static auto* get = reinterpret_cast<HttpGet*>(
      open_symbol(own_object("http.so"), kHttpGet,
                  "reading over HTTP and from S3 needs {} with libcurl, which cannot be opened: "
                  "{}; Debian's package of libcurl is libcurl4"));
  return *get;
}

bool is_url(std::string_view place) {
  return place.starts_with("http://") || place.starts_with("https://") ||
         place.starts_with("s3://");
}

bool has_credentials(std::string_view place) {
  if (!is_url(place)) return false;
  const auto begin = place.find("://") + 3;
  return place.substr(begin, place.find_first_of("/?#", begin) - begin).find('@') != place.npos;
}

std::shared_ptr<Remote> Remote::open(const RemoteReading& reading) {
  return std::make_shared<Fetcher>(reading);
}

std::unique_ptr<ByteSource> in_large_pieces(std::unique_ptr<ByteSource> file) {
  return std::make_unique<Pieces>(std::move(file));
}

}  // namespace millrace
