-- What wrk asks for. Arguments after "--": MODE TARGET HOST [KEYS]
--   fixed    always TARGET
--   once     TARGET, each time on a connection of its own
--   keys     TARGET followed by a number below KEYS, uniformly
--   counter  TARGET followed by a number that never repeats
local requests, keys, prefix, suffix, count

function init(args)
  wrk.headers["Host"] = args[3]
  local mode = args[1]
  if mode == "fixed" or mode == "once" then
    wrk.path = args[2]
    if mode == "once" then wrk.headers["Connection"] = "close" end
  elseif mode == "keys" then
    keys = tonumber(args[4])
    requests = {}
    for i = 1, keys do
      requests[i] = wrk.format("GET", args[2] .. (i - 1))
    end
    math.randomseed(1)
    request = function() return requests[math.random(keys)] end
  else
    count = 0
    prefix = "GET " .. args[2]
    suffix = " HTTP/1.1\r\nHost: " .. args[3] .. "\r\n\r\n"
    request = function()
      count = count + 1
      return prefix .. count .. suffix
    end
  end
end

function done(summary, latency, _)
  local e = summary.errors
  io.write(string.format("RESULT %d %d %d %d %d %d\n", summary.requests, summary.bytes, e.status,
                         e.connect + e.read + e.write + e.timeout, latency:percentile(50),
                         latency:percentile(99)))
end
