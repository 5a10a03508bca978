#include <utility>

#include "millrace/base/files.h"
#include "millrace/storage/byte_source.h"

namespace millrace {
namespace {

class LocalFile final : public ByteSource {
 public:
  explicit LocalFile(const std::filesystem::path& file)
      : name_(file.string()), mapped_(map_file(file)) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return mapped_.size; }
  HeldBytes read(const ByteRange& range) const override {
    return {mapped_.data,
            {reinterpret_cast<const char*>(mapped_.data.get()) + range.begin, range.size}};
  }
  HeldBytes hold(std::span<const ByteRange> ranges) const override {
    if (ranges.empty()) return {};
    const auto begin = ranges.front().begin;
    return read({begin, ranges.back().begin + ranges.back().size - begin});
  }

 private:
  const std::string name_;
  const SharedBytes mapped_;
};

}  // namespace

std::unique_ptr<ByteSource> open_local_file(const std::filesystem::path& file) {
  return std::make_unique<LocalFile>(file);
}

}  // namespace millrace
