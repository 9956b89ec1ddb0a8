# A session of Ruby's gem redis: ruby session.rb PORT
require "redis"

def expect(value, expected)
  abort "got #{value.inspect}, but not #{expected.inspect}" unless value == expected
end

redis = Redis.new(host: "127.0.0.1", port: ARGV[0].to_i)
expect redis.flushdb, "OK"
expect redis.set("name", "Ada", ex: 100, nx: true), true
expect redis.get("name"), "Ada"
expect redis.ttl("name"), 100
expect redis.get("none"), nil
expect redis.incr("visits"), 1
expect redis.incrby("visits", 41), 42
expect redis.mset("a", "1", "b", "2"), "OK"
expect redis.mget("a", "b", "c"), ["1", "2", nil]
expect redis.multi { |transaction| transaction.set("a", "3"); transaction.get("a") }, ["OK", "3"]
expect redis.pipelined { |pipeline| pipeline.incr("a"); pipeline.incr("a") }, [4, 5]
expect redis.scan_each.to_a.sort, ["a", "b", "name", "visits"]
messages = []
thread = Thread.new do
  Redis.new(host: "127.0.0.1", port: ARGV[0].to_i).subscribe("news") do |on|
    on.message { |_, message| messages << message; Thread.current.exit if message == "last" }
  end
end
sleep 0.01 until redis.publish("news", "first") == 1
redis.publish("news", "last")
thread.join
expect messages.last(2), ["first", "last"]
expect redis.del("a", "b"), 2
puts "ruby-redis #{Redis::VERSION}"
