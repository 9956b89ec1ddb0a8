// A session of hiredis: cc session.c -lhiredis && ./a.out PORT
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static redisContext *context;

static redisReply *next(void) {
  redisReply *reply;
  if (redisGetReply(context, (void **)&reply) != REDIS_OK) {
    fprintf(stderr, "no reply: %s\n", context->errstr);
    exit(1);
  }
  return reply;
}

static void expect(int type, const char *text, long long number) {
  redisReply *reply = next();
  int isRight = reply->type == type && (!text || !strcmp(reply->str, text)) && (type != REDIS_REPLY_INTEGER || reply->integer == number);
  if (!isRight) {
    fprintf(stderr, "got type %d, %s, %lld\n", reply->type, reply->str ? reply->str : "", reply->integer);
    exit(1);
  }
  freeReplyObject(reply);
}

int main(int count, char **arguments) {
  context = redisConnect("127.0.0.1", count > 1 ? atoi(arguments[1]) : 6379);
  if (!context || context->err) return 1;
  char value[] = {0, 1, '\r', '\n', (char)0xFF};
  redisAppendCommand(context, "FLUSHDB");
  redisAppendCommand(context, "SET %s %b EX %d", "name", value, sizeof value, 100);
  redisAppendCommand(context, "GET name");
  redisAppendCommand(context, "TTL name");
  redisAppendCommand(context, "GET none");
  redisAppendCommand(context, "INCRBY visits 42");
  redisAppendCommand(context, "HSET hash field value");
  redisAppendCommand(context, "MULTI");
  redisAppendCommand(context, "INCR visits");
  redisAppendCommand(context, "EXEC");
  expect(REDIS_REPLY_STATUS, "OK", 0);
  expect(REDIS_REPLY_STATUS, "OK", 0);
  redisReply *reply = next();
  if (reply->type != REDIS_REPLY_STRING || reply->len != sizeof value || memcmp(reply->str, value, sizeof value)) return 1;
  expect(REDIS_REPLY_INTEGER, NULL, 100);
  expect(REDIS_REPLY_NIL, NULL, 0);
  expect(REDIS_REPLY_INTEGER, NULL, 42);
  expect(REDIS_REPLY_ERROR, NULL, 0);
  expect(REDIS_REPLY_STATUS, "OK", 0);
  expect(REDIS_REPLY_STATUS, "QUEUED", 0);
  reply = next();
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 1 || reply->element[0]->integer != 43) return 1;
  printf("hiredis %d.%d.%d\n", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}
