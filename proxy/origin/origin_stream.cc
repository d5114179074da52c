#include "proxy/origin/origin_stream.h"

#include "proxy/origin/origin_http2_stream.h"

namespace encore::server {

void OriginStream::pause_http2() const { http2_->pause_reading(); }

void OriginStream::resume_http2() const { http2_->resume_reading(); }

bool OriginStream::is_http2_paused() const { return http2_->is_reading_paused(); }

const net::Address& OriginStream::http2_peer() const { return http2_->peer(); }

}  // namespace encore::server
