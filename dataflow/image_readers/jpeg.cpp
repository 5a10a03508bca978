// Decodes JPEGs whose header TurboJPEG rejects, such as those with unusual subsampling, and those
// with a TurboJPEG warning, to find out whether they are complete.
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>  // after <cstdio>, which it needs

#include <jerror.h>  // after jpeglib.h

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "millrace/dataflow/image_readers/readers.h"

namespace millrace {
namespace {

/// A file during decoding.
struct JpegFile {
  explicit JpegFile(std::string_view bytes) {
    jpeg.err = jpeg_std_error(&errors);
    jpeg.client_data = this;
    errors.error_exit = [](j_common_ptr about) {
      auto& self = *static_cast<JpegFile*>(about->client_data);
      about->err->format_message(about, self.why);
      std::longjmp(self.place, 1);
    };
    errors.emit_message = [](j_common_ptr about, int level) {
      if (level < 0 && about->err->msg_code == JWRN_JPEG_EOF) about->err->error_exit(about);
    };
    run([&] {
      jpeg_create_decompress(&jpeg);
      jpeg_mem_src(&jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    });
  }
  ~JpegFile() { jpeg_destroy_decompress(&jpeg); }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;

  /// Runs `work`; throws the error that libjpeg reports in it.
  template <class Work>
  void run(const Work& work) {
    if (reaches_its_end(place, work)) return;
    if (errors.msg_code == JERR_OUT_OF_MEMORY) throw std::bad_alloc();
    throw std::runtime_error(std::string("broken JPEG: ") + why);
  }

  jpeg_decompress_struct jpeg = {};
  jpeg_error_mgr errors = {};
  std::jmp_buf place;
  char why[JMSG_LENGTH_MAX] = {};
};

}  // namespace

void read_jpeg(std::string_view bytes, const PictureRoom& room) {
  JpegFile file(bytes);
  auto& jpeg = file.jpeg;
  file.run([&] {
    jpeg_read_header(&jpeg, TRUE);
    jpeg.out_color_space = jpeg.num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_calc_output_dimensions(&jpeg);
  });
  const std::size_t width = jpeg.output_width;
  auto* pixels = room(static_cast<int>(width), static_cast<int>(jpeg.output_height));
  const bool inks = jpeg.num_components == 4;
  std::vector<std::uint8_t> row(inks ? width * 4 : 0);
  file.run([&] {
    jpeg_start_decompress(&jpeg);
    while (jpeg.output_scanline < jpeg.output_height) {
      auto* target = pixels + jpeg.output_scanline * width * 3;
      auto* line = inks ? row.data() : target;
      jpeg_read_scanlines(&jpeg, &line, 1);
      if (inks) convert_inks(line, target, width);
    }
    jpeg_finish_decompress(&jpeg);
  });
}

}  // namespace millrace
