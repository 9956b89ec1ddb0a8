<?php
// A session of PHP's extension redis: php session.php PORT
function expect($value, $expected): void {
    if ($value !== $expected) {
        fwrite(STDERR, 'got ' . json_encode($value) . ', but not ' . json_encode($expected) . "\n");
        exit(1);
    }
}

$redis = new Redis();
$redis->connect('127.0.0.1', (int) $argv[1]);
expect($redis->flushDB(), true);
expect($redis->set('name', 'Ada', ['ex' => 100, 'nx']), true);
expect($redis->get('name'), 'Ada');
expect($redis->ttl('name'), 100);
expect($redis->get('none'), false);
expect($redis->incr('visits'), 1);
expect($redis->incrBy('visits', 41), 42);
expect($redis->mSet(['a' => '1', 'b' => '2']), true);
expect($redis->mGet(['a', 'b', 'c']), ['1', '2', false]);
expect($redis->multi()->set('a', '3')->get('a')->exec(), [true, '3']);
expect($redis->pipeline()->incr('a')->incr('a')->exec(), [4, 5]);
$redis->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
$cursor = null;
$keys = [];
while (($found = $redis->scan($cursor)) !== false) {
    $keys = array_merge($keys, $found);
}
sort($keys);
expect($keys, ['a', 'b', 'name', 'visits']);
expect($redis->del('a', 'b'), 2);
expect($redis->publish('news', 'x'), 0);
echo 'php-redis ', phpversion('redis'), "\n";
