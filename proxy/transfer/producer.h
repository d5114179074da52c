// Producer: what fills a transfer. An origin's response today; whatever else a body can be had from
// is one, too.
//
// Confined to the thread of its transfer's home. The unit that sets one (Transfer::set_producer)
// takes it back before it ends.
#pragma once

#include <string_view>

namespace encore::server {

class Producer {
 public:
  // Readers came or went, or one that came late wants the response stored. It ends nothing within
  // this call.
  virtual void on_readers_changed() = 0;
  // A reader has advanced while the producer was held back (Transfer::set_producer_paused).
  virtual void on_reader_advanced() = 0;

  // True if upload() may be called now; else TransferReader::on_upload_ready() tells when.
  virtual bool accepts_upload() const = 0;
  // True if it goes on taking content when the response is complete (RFC 9112 9.3). If that ends,
  // TransferReader::on_upload_ready() tells.
  virtual bool takes_rest() const { return false; }
  // Takes content of the request's body; `last` ends it, with trailer lines if it is chunked.
  // REQUIRES: accepts_upload().
  virtual void upload(std::string_view content, bool last, std::string_view trailers) = 0;

 protected:
  ~Producer() = default;
};

}  // namespace encore::server
