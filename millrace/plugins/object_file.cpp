#include "millrace/plugins/object_file.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"

namespace millrace {
namespace {

/// ELF's structures, copied out of the bytes: nothing says that they are aligned, or there.
class Elf {
 public:
  explicit Elf(std::string_view bytes) : bytes_(bytes), header_(at<Elf64_Ehdr>(0)) {}

  const Elf64_Ehdr& header() const { return header_; }

  Elf64_Shdr section(std::uint64_t number) const {
    return at<Elf64_Shdr>(header_.e_shoff + number * sizeof(Elf64_Shdr));
  }

  std::string_view bytes(const Elf64_Shdr& section) const {
    if (section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset)
      throw Error("the file is damaged: it ends too early");
    return bytes_.substr(section.sh_offset, section.sh_size);
  }

 private:
  template <class T>
  T at(std::uint64_t offset) const {
    if (offset > bytes_.size() || sizeof(T) > bytes_.size() - offset)
      throw Error("the file is damaged: it ends too early");
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }

  std::string_view bytes_;
  Elf64_Ehdr header_;
};

std::string machine_name(Elf64_Half machine) {
  switch (machine) {
    case EM_X86_64:
      return "x86-64";
    case EM_AARCH64:
      return "64-bit ARM";
    case EM_386:
      return "32-bit x86";
    case EM_ARM:
      return "32-bit ARM";
    default:
      return fmt::format("ELF machine {}", machine);
  }
}

Elf64_Half own_machine() {
  Elf64_Ehdr header;
  InputFile("/proc/self/exe").read(0, {reinterpret_cast<char*>(&header), sizeof header});
  return header.e_machine;
}

}  // namespace

std::optional<std::string> section_of(const std::filesystem::path& file, std::string_view section) {
  const auto text = read_file(file, {.look = [](std::string_view head) {
                                if (!head.starts_with(ELFMAG))
                                  throw Error("it is no shared object");
                              }});
  const Elf elf(text);
  // e_machine lies at the same place in files of 32 and 64 bits.
  if (const auto own = own_machine(); elf.header().e_machine != own)
    throw Error(fmt::format("it is built for {}, this machine is {}",
                            machine_name(elf.header().e_machine), machine_name(own)));
  if (elf.header().e_type != ET_DYN) throw Error("it is no shared object but another kind of ELF");
  if (elf.header().e_shnum == 0) return std::nullopt;
  const auto names = elf.bytes(elf.section(elf.header().e_shstrndx));
  for (std::uint64_t i = 0; i < elf.header().e_shnum; ++i) {
    const auto one = elf.section(i);
    if (one.sh_name >= names.size() || one.sh_type == SHT_NOBITS) continue;
    const auto name = names.substr(one.sh_name);
    if (name.substr(0, name.find('\0')) == section) return std::string(elf.bytes(one));
  }
  return std::nullopt;
}

}  // namespace millrace
