// RAII types and exceptions for FFmpeg's libraries.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/display.h>
#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <stdexcept>
#include <string>

#include "millrace/tools/video/files/video_files.h"

namespace millrace {

template <auto free>
struct FreeByAddress {
  template <class T>
  void operator()(T* one) const {
    free(&one);
  }
};
using UniqueCodec = std::unique_ptr<AVCodecContext, FreeByAddress<avcodec_free_context>>;
using UniqueFrame = std::unique_ptr<AVFrame, FreeByAddress<av_frame_free>>;
using UniquePacket = std::unique_ptr<AVPacket, FreeByAddress<av_packet_free>>;
struct FreeScaler {
  void operator()(SwsContext* one) const { sws_freeContext(one); }
};
using UniqueScaler = std::unique_ptr<SwsContext, FreeScaler>;

inline std::string reason(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof text);
  return text;
}

/// Returns `result`; throws std::runtime_error with "`what`: the library's reason" if it is an
/// error.
inline int checked(int result, const std::string& what) {
  if (result < 0) throw std::runtime_error(what + ": " + reason(result));
  return result;
}

template <class T>
T* checked(T* made) {
  if (!made) throw std::runtime_error("not enough memory");
  return made;
}

/// Flags that give the same bytes on every machine.
inline constexpr int kScaling = SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_BITEXACT;

std::unique_ptr<VideoReader> open_video_file(const std::string& file);
std::unique_ptr<VideoWriter> create_video_file(const std::string& file, int width, int height,
                                               VideoClock clock);

}  // namespace millrace
