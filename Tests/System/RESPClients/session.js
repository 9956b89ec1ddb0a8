// A session of node-redis: NODE_PATH=/usr/share/nodejs node session.js PORT
const assert = require('assert')
const { createClient } = require('redis')

async function main() {
  const url = `redis://127.0.0.1:${process.argv[2]}`
  const client = createClient({ url })
  await client.connect()
  assert.equal(await client.flushDb(), 'OK')
  assert.equal(await client.set('name', 'Ada', { EX: 100, NX: true }), 'OK')
  assert.equal(await client.get('name'), 'Ada')
  assert.equal(await client.ttl('name'), 100)
  assert.equal(await client.get('none'), null)
  assert.deepEqual(await Promise.all([client.incr('visits'), client.incrBy('visits', 41)]), [1, 42])
  assert.equal(await client.mSet({ a: '1', b: '2' }), 'OK')
  assert.deepEqual(await client.mGet(['a', 'b', 'c']), ['1', '2', null])
  assert.deepEqual(await client.multi().set('a', '3').get('a').exec(), ['OK', '3'])
  const keys = []
  for await (const key of client.scanIterator()) keys.push(key)
  assert.deepEqual(keys.sort(), ['a', 'b', 'name', 'visits'])
  const subscriber = client.duplicate()
  await subscriber.connect()
  const message = new Promise(resolve => subscriber.subscribe('news', resolve))
  while (await client.publish('news', 'hello') === 0) await new Promise(resolve => setTimeout(resolve, 10))
  assert.equal(await message, 'hello')
  await subscriber.quit()
  assert.equal(await client.del(['a', 'b']), 2)
  await assert.rejects(client.hSet('hash', 'field', 'value'), /unknown command/)
  await client.quit()
  console.log(`node-redis ${require('redis/package.json').version}`)
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
