// Files that are no traces, by the marks they begin with.
#include <algorithm>
#include <array>

#include "sim/trace/detect.h"

namespace encore::sim {
namespace {

struct Mark {
  std::string_view bytes;
  std::string_view what;
  std::size_t at = 0;
};

// For text only marks that no line of a trace begins with.
constexpr std::array kMarks = {
    Mark{"\x7f"
         "ELF",
         "an ELF program"},
    Mark{"PK\3\4", "a ZIP archive"},
    Mark{"PK\5\6", "an empty ZIP archive"},
    Mark{"ustar", "a tar archive; extract its files first", 257},
    Mark{"\x1f\x8b", "gzip data within compressed data"},
    Mark{"\x28\xb5\x2f\xfd", "zstd data within compressed data"},
    Mark{{"\xfd"
          "7zXZ\0",
          6},
         "xz data within compressed data"},
    Mark{"BZh91AY&SY", "bzip2 data; decompress it with `bzip2 -d`"},
    Mark{"\x04\x22\x4d\x18", "lz4 data; decompress it with `lz4 -d`"},
    Mark{"7z\xbc\xaf\x27\x1c", "a 7z archive"},
    Mark{"Rar!\x1a\x07", "a RAR archive"},
    Mark{"%PDF-", "a PDF document"},
    Mark{"\x89PNG\r\n", "a PNG image"},
    Mark{"\xff\xd8\xff", "a JPEG image"},
    Mark{"GIF87a", "a GIF image"},
    Mark{"GIF89a", "a GIF image"},
    Mark{"SQLite format 3", "an SQLite database; export its tables as csv first"},
    Mark{"PAR1", "a Parquet file; export its columns as csv first"},
    Mark{"Obj\1", "an Avro file"},
    Mark{"\x89HDF\r\n", "an HDF5 file"},
    Mark{"\x93NUMPY", "a NumPy array"},
    Mark{{"\0asm", 4}, "a WebAssembly module"},
    Mark{"\xca\xfe\xba\xbe", "a Java class"},
    Mark{"\xd4\xc3\xb2\xa1", "a capture of packets"},
    Mark{"\xa1\xb2\xc3\xd4", "a capture of packets"},
    Mark{"\x0a\x0d\x0d\x0a", "a capture of packets"},
    Mark{"OggS", "an Ogg file"},
    Mark{"!<arch>\n", "a library of object files"},
};

}  // namespace

std::string_view known_file(std::string_view bytes) {
  const auto found = std::ranges::find_if(kMarks, [&](const Mark& mark) {
    return bytes.size() > mark.at && bytes.substr(mark.at).starts_with(mark.bytes);
  });
  return found == kMarks.end() ? std::string_view{} : found->what;
}

}  // namespace encore::sim
