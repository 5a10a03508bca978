
#include "millrace/base/files.h"
#include "millrace/dataflow/store/remote/byte_source.h"

namespace millrace {
namespace {

class LocalFile final : public ByteSource {
 public:
  explicit LocalFile(const std::filesystem::path& file)
      : name_(file.string()), file_(std::make_shared<const InputFile>(file)) {}

  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return file_->size(); }
  HeldBytes read(const ByteRange& range) const override {
    const auto bytes = std::make_shared_for_overwrite<char[]>(range.size);
    file_->read(range.begin, {bytes.get(), range.size});
    return {bytes, {bytes.get(), range.size}};
  }
  std::unique_ptr<const ByteSource> local(std::span<const ByteRange>) const override {
    return std::make_unique<LocalFile>(*this);
  }

 private:
  std::string name_;
  std::shared_ptr<const InputFile> file_;
};

}  // namespace

std::unique_ptr<ByteSource> open_local_file(const std::filesystem::path& file) {
  return std::make_unique<LocalFile>(file);
}

}  // namespace millrace
