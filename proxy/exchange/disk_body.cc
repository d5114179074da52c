#include "proxy/exchange/disk_body.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/mutex.h"
#include "cache/disk_parts.h"

namespace encore::server {
namespace {

// If there is no memory now, or too many reads wait: so often it is tried again, so far apart.
constexpr std::uint32_t kReadsMax = 500;
constexpr Nanoseconds kReadInterval = std::chrono::milliseconds(20);

std::uint64_t block_begin(std::uint64_t position) {
  return position / disk::kBlockBytes * disk::kBlockBytes;
}

// So that it goes on in whole blocks.
std::uint64_t block_end(std::uint64_t position, std::uint64_t end) {
  return std::min(block_begin(position + disk::kBlockBytes - 1), end);
}

}  // namespace

// Receiver of what was read; a disk may be slower to answer than its reader to leave.
struct DiskBody::Mailbox {
  Mutex mutex;
  net::Loop* loop ENCORE_GUARDED_BY(mutex) = nullptr;  // null: nobody is there any more
  DiskBody* body = nullptr;                            // the loop's thread only
};

class DiskBody::Load final : public disk::DiskLoad {
 public:
  struct Piece {
    std::uint64_t number = 0;  // the body's
    std::uint32_t part = 0;
    std::uint64_t part_begin = 0;
    std::uint64_t part_bytes = 0;
    std::uint64_t end = 0;  // end of the wanted range
  };
  Load(std::shared_ptr<Mailbox> mailbox, store::BodyRef body, const Piece& piece)
      : mailbox_(std::move(mailbox)), body_(std::move(body)), piece_(piece) {}

  std::size_t first_read_bytes() const override { return disk::RecordReader::kPartFrontBytes; }

  std::expected<void, disk::Damage> read(const disk::RecordFront& front,
                                         disk::RecordReader& reader) override {
    const disk::RecordFields& fields = front.fields;
    if (fields.kind != disk::RecordKind::kPart || fields.body != piece_.number ||
        fields.part != piece_.part || fields.body_bytes != piece_.part_bytes) {
      return std::unexpected(disk::Damage::kKey);
    }
    while (body_->size() < piece_.end) {
      const std::uint64_t at = body_->size() - piece_.part_begin;
      const auto wanted = static_cast<std::size_t>(piece_.end - body_->size());
      const std::span<std::byte> room = body_->writable(wanted);
      const std::uint64_t block =
          std::min<std::uint64_t>(piece_.part_bytes - at, disk::kBlockBytes);
      if (room.size() < block) return {};  // no memory now
      const auto done = reader.read_into(at, room);
      if (!done) return std::unexpected(done.error());
      body_->append(*done);
    }
    return {};
  }

  void end(disk::LoadEnd how) override {
    const MutexLock lock(mailbox_->mutex);
    // Posted under the lock, for the loop is there as long as the body is.
    if (mailbox_->loop == nullptr) return;
    mailbox_->loop->post([mailbox = mailbox_, how] {
      if (mailbox->body != nullptr) mailbox->body->finish(how);
    });
  }

 private:
  const std::shared_ptr<Mailbox> mailbox_;
  const store::BodyRef body_;
  const Piece piece_;
};

Result<store::BodyRef> DiskBody::make_body(store::Store& store, const Wanted& wanted) {
  return store.make_body({.length = block_end(wanted.end, wanted.body.length),
                          .use = store::BodyUse::kStored,
                          .begin = block_begin(wanted.begin)});
}

DiskBody::DiskBody(const Parts& parts, const Wanted& wanted, store::BodyRef body,
                   std::function<void()> on_more)
    : parts_(parts),
      wanted_(wanted),
      body_(std::move(body)),
      on_more_(std::move(on_more)),
      mailbox_(std::make_shared<Mailbox>()),
      again_(parts.loop, [this] { read_on(); }),
      wanted_parts_(parts.disks.want(
          {.object = wanted.key,
           .number = wanted.body.number,
           .length = wanted.body.length,
           .from = static_cast<std::uint32_t>(wanted.begin / cache::kPartBytes),
           .to = static_cast<std::uint32_t>((wanted.end - 1) / cache::kPartBytes + 1)})),
      reader_{.position = wanted.begin},
      began_at_(body_->size()) {
  ENCORE_CHECK(wanted.begin < wanted.end && wanted.end <= wanted.body.length,
               "what is wanted of a body lies in it");
  mailbox_->body = this;
  {
    const MutexLock lock(mailbox_->mutex);
    mailbox_->loop = &parts.loop;
  }
  read_on();
}

DiskBody::~DiskBody() {
  parts_.disks.want_no_more(wanted_parts_);
  mailbox_->body = nullptr;
  const MutexLock lock(mailbox_->mutex);
  mailbox_->loop = nullptr;
}

void DiskBody::on_reader(const Reader& reader) {
  reader_ = reader;
  if (!again_.is_running()) read_on();
}

void DiskBody::read_on() {
  const std::uint64_t size = body_->size();
  if (reading_ || size >= wanted_.end || body_->state() != store::BodyState::kGrowing) return;
  const bool is_first = size == block_begin(wanted_.begin);
  const std::uint64_t ahead = reader_.may_read_ahead ? kPieceBytes : 0;
  if (!is_first && size > reader_.position + ahead) return;
  const auto part = static_cast<std::uint32_t>(size / cache::kPartBytes);
  const std::uint64_t part_begin = std::uint64_t{part} * cache::kPartBytes;
  const std::uint64_t part_end = part_begin + cache::part_bytes(wanted_.body.length, part);
  const std::uint64_t piece = is_first ? kFirstPieceBytes : kPieceBytes;
  const cache::Key key = key_at(size);
  // Asked first: a part that comes between the two is found.
  const bool may_come = wanted_.may_come && wanted_.may_come();
  const auto place = parts_.kernel.find_part(key, parts_.loop.now());
  if (!place) {
    // The last ones may be on their way to the disk when no more come.
    const bool is_on_its_way =
        wanted_.may_come && place.error() == cache::PartMissing::kNotWritten && ++vain_ < kReadsMax;
    if (may_come || is_on_its_way) {
      again_.start(kReadInterval);
    } else {
      end_early();
    }
    return;
  }
  if (size == part_begin) parts_.disks.want_from(wanted_parts_, part);
  reading_ = true;
  began_at_ = size;
  asked_at_ = *place;
  parts_.disks.load(
      key, *place,
      std::make_unique<Load>(
          mailbox_, body_,
          Load::Piece{.number = wanted_.body.number,
                      .part = part,
                      .part_begin = part_begin,
                      .part_bytes = part_end - part_begin,
                      .end = block_end(std::min(size + piece, wanted_.end), part_end)}));
}

// Since it was looked up: it was read where it no longer is.
bool DiskBody::has_moved() const {
  const auto place = parts_.kernel.find_part(key_at(body_->size()), parts_.loop.now());
  return place && *place != asked_at_;
}

cache::Key DiskBody::key_at(std::uint64_t position) const {
  return cache::part_key(wanted_.key, wanted_.body.number, position / cache::kPartBytes);
}

void DiskBody::finish(disk::LoadEnd how) {
  reading_ = false;
  const bool may_come = how == disk::LoadEnd::kDone || how == disk::LoadEnd::kBusy ||
                        (how == disk::LoadEnd::kLost && has_moved());
  if (!may_come) {
    end_early();
    return;
  }
  vain_ = body_->size() == began_at_ ? vain_ + 1 : 0;
  if (body_->size() >= wanted_.end) {
    body_->complete();
  } else if (vain_ == kReadsMax) {
    end_early();
    return;
  } else if (vain_ != 0) {
    again_.start(kReadInterval);
    return;
  }
  on_more_();
}

void DiskBody::end_early() {
  body_->abort();
  // Not from within the call that found out.
  parts_.loop.post([mailbox = mailbox_] {
    if (mailbox->body != nullptr) mailbox->body->on_more_();
  });
}

}  // namespace encore::server
