#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "millrace/tools/video/files/libav.h"

namespace millrace {
namespace {

struct CloseInput {
  void operator()(AVFormatContext* one) const { avformat_close_input(&one); }
};
using UniqueInput = std::unique_ptr<AVFormatContext, CloseInput>;

/// Opens a video file, but no other file that it refers to.
UniqueInput open_input(const std::string& file) {
  AVFormatContext* context = nullptr;
  AVDictionary* options = nullptr;
  av_dict_set(&options, "protocol_whitelist", "file", 0);
  const int opened = avformat_open_input(&context, ("file:" + file).c_str(), nullptr, &options);
  av_dict_free(&options);
  checked(opened, "not a readable video");
  UniqueInput input(context);
  checked(avformat_find_stream_info(input.get(), nullptr), "not a readable video");
  return input;
}

AVStream& video_stream_of(AVFormatContext& input) {
  const int found = av_find_best_stream(&input, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (found < 0 || (input.streams[found]->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0)
    throw std::runtime_error("has no video stream");
  return *input.streams[found];
}

UniqueCodec open_decoder(const AVStream& stream) {
  const auto* codec = avcodec_find_decoder(stream.codecpar->codec_id);
  if (!codec)
    throw std::runtime_error(std::string("codec ") + avcodec_get_name(stream.codecpar->codec_id) +
                             " cannot be decoded by the installed FFmpeg libraries");
  UniqueCodec decoder(checked(avcodec_alloc_context3(codec)));
  checked(avcodec_parameters_to_context(decoder.get(), stream.codecpar), "cannot be decoded");
  decoder->pkt_timebase = stream.time_base;
  decoder->thread_count = 2;
  checked(avcodec_open2(decoder.get(), codec, nullptr), "cannot be decoded");
  return decoder;
}

/// Returns the clockwise quarter turns that the file requests from players.
int turns_of(const AVStream& stream) {
  const auto* matrix = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
  if (!matrix) return 0;
  const double degrees = -av_display_rotation_get(reinterpret_cast<const std::int32_t*>(matrix));
  if (std::isnan(degrees)) return 0;
  return static_cast<int>(std::lround(degrees / 90) % 4 + 4) % 4;
}

/// Rotates an image of `width` x `height` pixels by clockwise quarter turns.
void turn(const std::uint8_t* from, int width, int height, int turns, std::uint8_t* to) {
  const int columns = turns % 2 == 1 ? height : width;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x, from += 3) {
      const int column = turns == 1 ? height - 1 - y : turns == 2 ? width - 1 - x : y;
      const int row = turns == 1 ? x : turns == 2 ? height - 1 - y : width - 1 - x;
      std::memcpy(to + 3 * (static_cast<std::ptrdiff_t>(row) * columns + column), from, 3);
    }
}

class Reader final : public VideoReader {
 public:
  explicit Reader(const std::string& file)
      : input_(open_input(file)),
        stream_(video_stream_of(*input_)),
        decoder_(open_decoder(stream_)),
        turns_(turns_of(stream_)),
        width_(stream_.codecpar->width),
        height_(stream_.codecpar->height) {
    constexpr int kMostSide = 16384;  // pixels
    if (width_ < 1 || height_ < 1 || width_ > kMostSide || height_ > kMostSide)
      throw std::runtime_error("unsupported frame size " + std::to_string(width_) + " x " +
                               std::to_string(height_) + " pixels");
    facts_ = {.width = turns_ % 2 == 1 ? height_ : width_,
              .height = turns_ % 2 == 1 ? width_ : height_,
              .frames = frames_of_head(),
              .clock = {stream_.time_base.num, stream_.time_base.den}};
  }

  const VideoFacts& facts() const override { return facts_; }

  std::optional<std::int64_t> read(std::uint8_t* rgb) override {
    if (!decode()) {
      finish_fault();
      return std::nullopt;
    }
    ++frames_;
    if (frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0)
      record_fault("has damaged frames");
    if (turns_ == 0) {
      convert(rgb);
    } else {
      unrotated_.resize(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_) * 3);
      convert(unrotated_.data());
      turn(unrotated_.data(), width_, height_, turns_, rgb);
    }
    return time();
  }

  std::string fault() const override { return fault_; }

 private:
  std::int64_t frames_of_head() const {
    if (stream_.nb_frames > 0) return stream_.nb_frames;
    const auto rate = stream_.avg_frame_rate;
    if (input_->duration <= 0 || rate.num <= 0 || rate.den <= 0) return 0;
    return std::llround(static_cast<double>(input_->duration) / AV_TIME_BASE * av_q2d(rate));
  }

  void record_fault(const std::string& why) {
    if (fault_.empty()) fault_ = why;
  }

  /// Decodes the next frame into frame_. Returns false at the end.
  bool decode() {
    for (;;) {
      const int got = avcodec_receive_frame(decoder_.get(), frame_.get());
      if (got == 0) return true;
      if (got == AVERROR_EOF) return false;
      if (got != AVERROR(EAGAIN)) record_fault("has damaged frames");
      if (is_drained_ && got != AVERROR(EAGAIN)) return false;
      send_next();
    }
  }

  /// Sends the next packet of the stream, or the end of the stream, to the decoder.
  void send_next() {
    int got = 0;
    while ((got = av_read_frame(input_.get(), packet_.get())) >= 0) {
      const bool is_mine = packet_->stream_index == stream_.index;
      if (is_mine) {
        if ((packet_->flags & AV_PKT_FLAG_CORRUPT) != 0) record_fault("is truncated or damaged");
        if (avcodec_send_packet(decoder_.get(), packet_.get()) < 0)
          record_fault("has damaged frames");
      }
      av_packet_unref(packet_.get());
      if (is_mine) return;
    }
    if (got != AVERROR_EOF) record_fault("is truncated or damaged");
    avcodec_send_packet(decoder_.get(), nullptr);
    is_drained_ = true;
  }

  void finish_fault() {
    if (!fault_.empty() && !is_finished_)
      fault_ += ": " + std::to_string(frames_) + " frames could be read";
    is_finished_ = true;
  }

  void convert(std::uint8_t* rgb) {
    const auto& frame = *frame_;
    scaler_.reset(sws_getCachedContext(scaler_.release(), frame.width, frame.height,
                                       static_cast<AVPixelFormat>(frame.format), width_, height_,
                                       AV_PIX_FMT_RGB24, kScaling, nullptr, nullptr, nullptr));
    if (!scaler_) throw std::runtime_error("has an unsupported pixel format");
    int *from = nullptr, *to = nullptr, full_from = 0, full_to = 0, brightness = 0, contrast = 0,
        saturation = 0;
    if (sws_getColorspaceDetails(scaler_.get(), &from, &full_from, &to, &full_to, &brightness,
                                 &contrast, &saturation) >= 0) {
      const int space = frame.colorspace == AVCOL_SPC_BT709 ? SWS_CS_ITU709 : SWS_CS_DEFAULT;
      sws_setColorspaceDetails(scaler_.get(), sws_getCoefficients(space),
                               frame.color_range == AVCOL_RANGE_JPEG ? 1 : full_from, to, full_to,
                               brightness, contrast, saturation);
    }
    std::uint8_t* const planes[4] = {rgb, nullptr, nullptr, nullptr};
    const int strides[4] = {3 * width_, 0, 0, 0};
    checked(sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, planes, strides),
            "has an unsupported pixel format");
  }

  /// Returns the display time of the frame; one tick after the previous frame if the file has no
  /// time for it or an earlier one.
  std::int64_t time() {
    auto time = frame_->best_effort_timestamp;
    if (time == AV_NOPTS_VALUE) time = last_ + std::max<std::int64_t>(frame_->pkt_duration, 1);
    if (frames_ > 1) time = std::max(time, last_ + 1);
    return last_ = time;
  }

  const UniqueInput input_;
  AVStream& stream_;
  const UniqueCodec decoder_;
  const int turns_, width_, height_;  // stored size, before rotation
  VideoFacts facts_;
  const UniqueFrame frame_{checked(av_frame_alloc())};
  const UniquePacket packet_{checked(av_packet_alloc())};
  UniqueScaler scaler_;
  std::vector<std::uint8_t> unrotated_;
  std::string fault_;
  bool is_drained_ = false, is_finished_ = false;
  std::int64_t frames_ = 0, last_ = -1;
};

}  // namespace

std::unique_ptr<VideoReader> open_video_file(const std::string& file) {
  av_log_set_level(AV_LOG_QUIET);  // errors are thrown instead
  return std::make_unique<Reader>(file);
}

}  // namespace millrace
