#include "tests/fuzz/proxy/http2_wire.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/fuzz/proxy/http2_fields.h"

namespace encore::proxyfuzz {
namespace {

constexpr std::size_t kFrameHeaderBytes = 9;

bool is_of_head(const nghttp2_frame_hd& header) {
  return header.type == NGHTTP2_HEADERS || header.type == NGHTTP2_CONTINUATION;
}

}  // namespace

// Callbacks for nghttp2.
struct Http2Callbacks {
  static Http2Wire& wire(void* user) { return *static_cast<Http2Wire*>(user); }

  static int on_begin_frame(nghttp2_session*, const nghttp2_frame_hd* header, void* user) {
    Http2Wire::Stream* const stream = wire(user).find(header->stream_id);
    if (stream == nullptr) return 0;
    if (is_of_head(*header)) stream->head_bytes += kFrameHeaderBytes + header->length;
    if (header->type != NGHTTP2_DATA) return 0;
    stream->bytes += kFrameHeaderBytes;
    if (header->length != 0) ++stream->frames;
    return 0;
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* user) {
    Http2Wire::Stream* const stream = wire(user).find(frame->hd.stream_id);
    if (stream == nullptr) return 0;
    const std::string_view named(reinterpret_cast<const char*>(name), name_size);
    const std::string_view said(reinterpret_cast<const char*>(value), value_size);
    if (named == ":status") {
      stream->status = static_cast<int>(number(said).value_or(0));
    } else {
      stream->fields.push_back({usual_name(named), std::string(said)});
    }
    return 0;
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* user) {
    Http2Wire& self = wire(user);
    const std::int32_t id = frame->hd.stream_id;
    const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (frame->hd.type == NGHTTP2_GOAWAY) {
      const nghttp2_goaway& goaway = frame->goaway;
      self.events_.on_goaway(
          goaway.last_stream_id, goaway.error_code,
          {reinterpret_cast<const char*>(goaway.opaque_data), goaway.opaque_data_len});
      return 0;
    }
    Http2Wire::Stream* const stream = self.find(id);
    if (stream == nullptr) return 0;
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
      self.events_.on_reset(id, frame->rst_stream.error_code);
    } else if (frame->hd.type == NGHTTP2_HEADERS) {
      stream->bytes += std::exchange(stream->head_bytes, 0);
      Fields fields = std::exchange(stream->fields, {});
      if (stream->has_head) {
        self.events_.on_end(id, std::move(fields));
        return 0;
      }
      stream->has_head = stream->status >= 200;
      self.events_.on_head(id, stream->status, std::move(fields));
      if (ends && self.find(id) != nullptr) self.events_.on_end(id, {});
    } else if (frame->hd.type == NGHTTP2_DATA && ends) {
      self.events_.on_end(id, {});
    }
    return 0;
  }

  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                     std::size_t size, void* user) {
    Http2Wire& self = wire(user);
    Http2Wire::Stream* const stream = self.find(id);
    if (stream == nullptr) {
      self.consume_connection(size);  // bytes that had left before its reset came
      return 0;
    }
    stream->bytes += size;
    self.events_.on_content(id, {reinterpret_cast<const char*>(bytes), size});
    return 0;
  }

  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t, void* user) {
    auto& streams = wire(user).streams_;
    const auto found = streams.find(id);
    if (found == streams.end()) return 0;
    found->second.has_sent_all = true;  // or never will
    if (found->second.is_dropped) streams.erase(found);
    return 0;
  }

  static int on_invalid_frame(nghttp2_session*, const nghttp2_frame* frame, int error, void* user) {
    wire(user).events_.on_fault(invalid_frame(*frame, error));
    return 0;
  }

  static int on_invalid_header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name,
                               std::size_t size, const std::uint8_t*, std::size_t, std::uint8_t,
                               void* user) {
    wire(user).events_.on_fault(invalid_header(name, size));
    return 0;
  }

  static ssize_t padding(nghttp2_session*, const nghttp2_frame* frame, std::size_t most,
                         void* user) {
    Http2Wire& self = wire(user);
    return padded_length(self.random_, self.plan_.pads, *frame, most);
  }

  static ssize_t read_upload(nghttp2_session* session, std::int32_t id, std::uint8_t* into,
                             std::size_t most, std::uint32_t* flags, nghttp2_data_source*,
                             void* user) {
    Http2Wire& self = wire(user);
    const auto found = self.streams_.find(id);
    if (found == self.streams_.end() || found->second.is_stopped) return NGHTTP2_ERR_DEFERRED;
    Http2Wire::Stream* const stream = &found->second;
    Http2Wire::Upload& upload = stream->upload;
    const std::size_t piece = self.random_.percent(30) ? self.random_.between(1, 2000) : most;
    const std::size_t size = std::min({most, upload.bytes, piece});
    upload.bytes -= size;
    std::memset(into, 'x', size);
    if (std::exchange(stream->stops, false)) stream->is_stopped = true;
    // At times the end is a frame of its own.
    if (upload.bytes != 0 || stream->is_stopped || (size != 0 && self.random_.percent(20))) {
      return static_cast<ssize_t>(size);
    }
    stream->has_sent_all = true;
    end_content(session, id, upload.trailers, flags);
    return static_cast<ssize_t>(size);
  }

  static nghttp2_session_callbacks* make() {
    nghttp2_session_callbacks* made = nullptr;
    check_http2(nghttp2_session_callbacks_new(&made) == 0, "no callbacks");
    nghttp2_session_callbacks_set_on_begin_frame_callback(made, on_begin_frame);
    nghttp2_session_callbacks_set_on_header_callback(made, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, on_close);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(made, on_invalid_frame);
    nghttp2_session_callbacks_set_on_invalid_header_callback(made, on_invalid_header);
    nghttp2_session_callbacks_set_select_padding_callback(made, padding);
    return made;
  }
};

Http2Wire::Plan Http2Wire::draw_plan(Random& random) {
  constexpr std::uint32_t kMiB = 1 << 20;
  Plan out;
  // The smallest lets a frame through that counts as work done (docs/decisions/0473).
  out.window = random.pick<std::uint32_t>({1200, 5000, 65535, 65535, kMiB, 16 * kMiB});
  out.connection_window = random.pick<std::uint32_t>({65535, 65535, kMiB, 16 * kMiB});
  out.table_bytes = random.pick<std::uint32_t>({4096, 4096, 0, 65536});
  out.pads = random.pick({0.0, 0.0, 0.0, 30.0});
  out.pauses = random.pick({0.0, 20.0});
  return out;
}

Http2Wire::Http2Wire(const Plan& plan, Random random, Http2Events& events)
    : plan_(plan), random_(random), events_(events) {
  static nghttp2_session_callbacks* const callbacks = Http2Callbacks::make();
  static nghttp2_option* const option = [] {
    nghttp2_option* made = nullptr;
    check_http2(nghttp2_option_new(&made) == 0, "no options");
    nghttp2_option_set_no_auto_window_update(made, 1);
    return made;
  }();
  check_http2(nghttp2_session_client_new2(&session_, callbacks, this, option) == 0, "no session");
  const std::array<nghttp2_settings_entry, 3> settings = {
      {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
       {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, plan.window},
       {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, plan.table_bytes}}};
  check_http2(
      nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0,
      "no settings");
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                        static_cast<std::int32_t>(plan.connection_window));
}

Http2Wire::~Http2Wire() { nghttp2_session_del(session_); }

Http2Wire::Stream* Http2Wire::find(std::int32_t stream) {
  const auto found = streams_.find(stream);
  return found == streams_.end() || found->second.is_dropped ? nullptr : &found->second;
}

void Http2Wire::drop(std::int32_t stream) {
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  found->second.is_dropped = true;
  if (found->second.has_sent_all) streams_.erase(found);
}

std::int32_t Http2Wire::request(const Fields& fields, const Upload& upload) {
  const std::vector<nghttp2_nv> pairs = pairs_of(fields);
  const nghttp2_data_provider provider{.source = {}, .read_callback = Http2Callbacks::read_upload};
  const std::int32_t id = nghttp2_submit_request(session_, nullptr, pairs.data(), pairs.size(),
                                                 upload.is_there ? &provider : nullptr, nullptr);
  check_http2(id > 0, "no stream");
  Stream& stream = streams_[id];
  stream.upload = upload;
  stream.stops = upload.is_there && random_.percent(plan_.pauses);
  stream.has_sent_all = !upload.is_there;
  return id;
}

bool Http2Wire::receive(std::string_view bytes) {
  const ssize_t used = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (used >= 0) return true;
  events_.on_fault(std::string("bytes that are no HTTP/2: ") +
                   nghttp2_strerror(static_cast<int>(used)));
  return false;
}

void Http2Wire::take_output(std::string& out) {
  while (true) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    check_http2(size >= 0, "nothing can be sent");
    if (size == 0) return;
    out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  }
}

void Http2Wire::reset(std::int32_t stream) {
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
}

void Http2Wire::consume_stream(std::int32_t stream, std::size_t bytes) {
  nghttp2_session_consume_stream(session_, stream, bytes);
}

void Http2Wire::consume_connection(std::size_t bytes) {
  nghttp2_session_consume_connection(session_, bytes);
}

bool Http2Wire::resume_uploads() {
  bool any = false;
  for (auto& [id, stream] : streams_) {
    if (!std::exchange(stream.is_stopped, false)) continue;
    any = true;
    nghttp2_session_resume_data(session_, id);
  }
  return any;
}

void Http2Wire::ping() { nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr); }

void Http2Wire::set_window(std::uint32_t bytes) {
  const nghttp2_settings_entry setting{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, bytes};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &setting, 1);
}

std::uint64_t Http2Wire::bytes_of(std::int32_t stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? 0 : found->second.bytes;
}

std::uint64_t Http2Wire::frames_of(std::int32_t stream) const {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? 0 : found->second.frames;
}

bool Http2Wire::is_uploading() const {
  return std::ranges::any_of(streams_, [](const auto& each) { return !each.second.has_sent_all; });
}

}  // namespace encore::proxyfuzz
