// Traces as others have published them, most without a header.
#include <functional>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/sim/directory.h"
#include "tests/sim/run.h"

namespace encore::sim {
namespace {

struct Published {
  std::string format;
  std::string header;  // empty: none is usual
  // The row of request i for object `object`.
  std::function<std::string(int, int)> row;
  std::uint64_t size = 4096;  // size of each object
};

std::string number(int value) { return std::to_string(value); }

const std::vector<Published>& forms() {
  static const std::vector<Published> all = {
      {"twitter", "timestamp,anonymized key,key size,value size,client id,operation,TTL",
       [](int i, int o) {
         return number(i) + ",q:q:1:8WTfjZU14ee" + number(o) + ",17,4079,3,get,0";
       }},
      {"tencent-block", "timestamp,offset,size,iotype,volumeid",
       [](int i, int o) { return number(1538323200 + i) + "," + number(o * 64) + ",8,0,1063"; }},
      {"alibaba-block", "device_id,opcode,offset,length,timestamp",
       [](int i, int o) {
         return "419,W," + number(o * 4096) + ",4096," + number(1577808000) + "00" +
                number(1000 + i);
       }},
      {"msr", "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
       [](int i, int o) {
         return "1281660837" + number(20000000 + i * 1000) + ",usr,0,Read," + number(o * 4096) +
                ",4096,41286";
       }},
      {"spc", "",
       [](int i, int o) { return "0," + number(o * 8) + ",4096,R," + number(i) + ".551706"; }},
      {"ibm-cos", "",
       [](int i, int o) {
         return number(1219008 + i) + " REST.GET.OBJECT 8d4fcda3d675ba" + number(10 + o) +
                " 4096 0 4095";
       }},
      {"wiki-cdn", "",
       [](int i, int o) {
         return number(i) + "\t83310450939" + number(o) + "\tjpeg\t4096\t0.001";
       }},
      {"wiki-cdn", "",
       [](int i, int o) { return number(i) + "\t-50939" + number(1000 + o) + "\t4096\t0.25"; }},
      {"meta-kv", "",
       [](int i, int o) { return number(80000 + o) + ",GET,4096,1," + number(20 + i % 2); }},
      {"meta-kv", "",
       [](int i, int o) {
         return number(i) + ",k" + number(80000 + o) + ",20,GET,1,4096,1,0,5,7";
       }},
      {"tencent-photo", "",
       [](int i, int o) {
         return "201602010000" + number(10 + i / 100) + " 0123456789abcdef" + number(o) +
                " 5 m 4096 1 PHONE 3";
       }},
      {"meta-cdn", "",
       [](int i, int o) {
         return number(1679300000 + i) + ",c" + number(o) +
                ",1,4096,4096,300,-1,-1,86400,0.5,1,0,2,-,3";
       }},
  };
  return all;
}

// A thousand requests for 200 objects: 80 % are hits where they all fit.
std::string trace_of(const Published& form, bool with_header) {
  std::string text = with_header ? form.header + "\n" : "";
  for (int i = 0; i < 1000; ++i) {
    text += form.row(i, i * 7 % 200) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("Published traces are told by the shape of their columns", "[sim][trace]") {
  const Directory directory;
  for (const Published& form : forms()) {
    for (const bool with_header : {false, true}) {
      if (with_header && form.header.empty()) continue;
      const std::string path = directory.write("t", trace_of(form, with_header));
      for (const std::string& how : {std::string(), " --format " + form.format}) {
        const bool is_photo = form.format == "tencent-photo";
        const Ran ran =
            run("replay --json --no-timing --admission always --eviction lru "
                "--cache-size 1GiB " +
                path + (is_photo && !how.empty() ? how + " --delimiter space" : how));
        CAPTURE(form.format, with_header, how, form.row(0, 0), ran.err, ran.out.substr(0, 300));
        CHECK(ran.out.find("\"format\": \"" + form.format + "\"") != std::string::npos);
        CHECK(ran.out.find("\"hits\": 800,") != std::string::npos);
        CHECK(ran.out.find("\"footprint_bytes\": " + number(200 * 4096)) != std::string::npos);
      }
    }
  }
}

TEST_CASE("A header's known names say more than the shape of the columns", "[sim][trace]") {
  const Directory directory;
  const Ran ran =
      run("stats --json " + directory.write("t", "size,key,ttl,flag,time\n8,5,0,1,7\n8,6,0,0,8\n"));
  CHECK(ran.out.find("\"format\": \"csv\"") != std::string::npos);
  const Ran tabs =
      run("stats --json " + directory.write("t", "size\tkey\tttl\tflag\ttime\n8\t5\t0\t1\t7\n"));
  CHECK(tabs.out.find("\"format\": \"tsv\"") != std::string::npos);
}

TEST_CASE("Columns that nobody knows are refused with what to say", "[sim][trace]") {
  const Directory directory;
  for (const char* separator : {",", "\t", ";", "|", " "}) {
    std::string lines;
    for (int i = 0; i < 50; ++i) {
      for (int column = 0; column < 6; ++column) {
        lines += (column == 0 ? "" : separator) + number(i * 7 % (11 + column) + 100 * column + 2);
      }
      lines += "\n";
    }
    const Ran ran = run("stats " + directory.write("t", lines));
    CAPTURE(separator, ran.err);
    CHECK(ran.exit_code == 2);
    CHECK(ran.err.find("--columns") != std::string::npos);
  }
}

TEST_CASE("Columns are numbered from 1, and the first request is shown", "[sim][trace]") {
  const Directory directory;
  const std::string path = directory.write("t", "foo,bar,baz\n1,a,10\n2,b,20\n");
  const Ran ran = run("stats --no-timing " + path + " --format csv --columns time=1,key=2,size=3");
  CHECK(ran.out.find("The first request: key \"a\", size 10, time 1 s.") != std::string::npos);
  CHECK(ran.out.find("2 lines or records, 0 not counted by the rule, 0 bad") != std::string::npos);
  const Ran zero = run("stats " + path + " --columns key=0,size=3");
  CHECK(zero.exit_code == 2);
  CHECK(zero.err.find("from 1") != std::string::npos);
  CHECK(run("stats --help").out.find("from 1 for the first column") != std::string::npos);
}

TEST_CASE("Operations of a key-value cache count as often as they say", "[sim][trace]") {
  const Directory directory;
  std::string lines = "key,op,size,op_count,key_size\n";
  for (int i = 0; i < 10; ++i) lines += number(i % 2) + ",GET,100,3,5\n";
  const Ran ran = run("replay --json --no-timing --admission always --cache-size 1MiB " +
                      directory.write("t", lines));
  CHECK(ran.out.find("\"requests\": 30,") != std::string::npos);
  CHECK(ran.out.find("\"hits\": 28,") != std::string::npos);
}

TEST_CASE("A read that found nothing has the size of the write that follows", "[sim][trace]") {
  const Directory directory;
  const std::string csv =
      directory.write("csv",
                      "key,op,size,op_count\na,GET,0,1\nb,GET,7,2\na,SET,500,1\n"
                      "a,GET,500,1\nc,GET,0,1\n");
  std::string rows;
  for (int i = 0; i < 20; ++i) {
    rows += number(i) + ",k" + number(i) + ",10,0,1,get,0\n";
    rows += number(i) + ",k" + number(i) + ",10,490,1,set,60\n";
  }
  const Ran ran = run("replay --json --no-timing --admission always --cache-size 1MiB " + csv);
  CAPTURE(ran.out, ran.err);
  CHECK(ran.out.find("\"requests\": 5,") != std::string::npos);
  CHECK(ran.out.find("\"hits\": 2,") != std::string::npos);
  CHECK(ran.out.find("\"bytes_requested\": 1014,") != std::string::npos);
  const Ran twitter = run("stats --json --no-timing " + directory.write("twitter", rows));
  CHECK(twitter.out.find("\"bytes_requested\": 10000,") != std::string::npos);
  CHECK(twitter.out.find("\"requests\": 20,") != std::string::npos);
}

TEST_CASE("Text in UTF-8 is text, whatever its share of bytes beyond ASCII", "[sim][trace]") {
  const Directory directory;
  std::string lines = "time,key,size\n";
  for (int i = 0; i < 3000; ++i) {
    lines += number(i) +
             ",/\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0"
             "\xb5\xd1\x82" +
             number(i % 9) + ",9\n";
  }
  for (const std::string& start : {std::string(), std::string("x")}) {
    const Ran ran = run("stats --json --no-timing " + directory.write("t", lines + start));
    CAPTURE(ran.err);
    CHECK(ran.out.find("\"objects\": 9,") != std::string::npos);
  }
}

TEST_CASE("Whole numbers beyond 64 bits are keys of their own", "[sim][trace]") {
  const Directory directory;
  std::string json;
  std::string csv = "time,key,size\n";
  for (int i = 0; i < 20; ++i) {
    const std::string big = "184467440737095516" + number(20 + i);
    json += "{\"time\": " + number(i) + ", \"key\": " + big + ", \"size\": 5}\n";
    csv += number(i) + "," + big + ",5\n";
  }
  for (const std::string& path : {directory.write("j", json), directory.write("c", csv)}) {
    CHECK(run("stats --json --no-timing " + path).out.find("\"objects\": 20,") !=
          std::string::npos);
  }
}

TEST_CASE("Requests that a server could not parse are passed over, and URLs may have blanks",
          "[sim][trace]") {
  const Directory directory;
  const std::string date = "1.2.3.4 - - [10/Oct/2000:13:55:36 -0700] ";
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += date + "\"\\x16\\x03\\x01\\x02\" 400 150 \"-\" \"-\"\n";
    lines += date + "\"GET /a b " + number(i % 2) + " HTTP/1.1\" 200 10\n";
    lines += date + "\"GET /c d " + number(i % 2) + "\" 200 10\n";
    lines += date + "\"\" 400 0\n";
    lines += date + "\"-\" 408 -\n";
  }
  const Ran ran = run("stats --json --no-timing " + directory.write("t", lines));
  CAPTURE(ran.out, ran.err);
  CHECK(ran.out.find("\"requests\": 80,") != std::string::npos);
  CHECK(ran.out.find("\"objects\": 4,") != std::string::npos);
  CHECK(ran.out.find("\"bad\": 0") != std::string::npos);
}

}  // namespace encore::sim
