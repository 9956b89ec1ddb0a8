"""A session of django-redis: python3 session_django.py PORT"""

import sys

import django
import django_redis
from django.conf import settings

settings.configure(
    CACHES={
        "default": {
            "BACKEND": "django_redis.cache.RedisCache",
            "LOCATION": f"redis://127.0.0.1:{sys.argv[1]}/0",
        }
    }
)
django.setup()

from django.core.cache import cache  # noqa: E402

cache.clear()
assert cache.set("name", {"first": "Ada"}, timeout=100)
assert cache.get("name") == {"first": "Ada"}
assert cache.ttl("name") == 100
assert cache.get("none", "default") == "default"
assert cache.add("name", 1) is False
cache.set_many({"a": 1, "b": 2})
assert cache.get_many(["a", "b", "c"]) == {"a": 1, "b": 2}
assert cache.incr("a") == 2 and cache.decr("a", 2) == 0
assert sorted(cache.keys("*")) == ["a", "b", "name"]
assert sorted(cache.iter_keys("*")) == ["a", "b", "name"]
assert cache.touch("name", 50) and cache.ttl("name") == 50
assert cache.delete_pattern("[ab]") == 2
with cache.lock("lock", timeout=5):
    assert cache.has_key("lock")
assert not cache.has_key("lock")
assert cache.delete("name")
print(f"django-redis {django_redis.__version__}")
