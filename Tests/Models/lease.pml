/* The lease and the fence of replicated stores (Protocol/replicated-format.md): two nodes, a database, and a clock.
 *
 * A read that passes both checks of the lease must return the last commit, whatever is delayed, and however often the store
 * changes hands. contrib/model checks all interleavings, and that each broken rule is noticed:
 *
 *   NO_FENCE        an append does not check that its node still leads
 *   NO_LEASE        reads do not check the lease
 *   ONE_CHECK       reads check the lease before they are executed, but not before the reply
 *   NO_OBSERVATION  a node is declared dead as soon as its beat was seen twice
 *   LATE_LEASE      the lease begins when the beat is acknowledged
 */

#define LEASE 2
#define END 9
#define BEATS 3
#define COMMITS 2

byte now;

/* The database. Each atomic step is a transaction. */
byte epoch = 1, leader = 0, committed = 0;
bool live[2] = true;
byte beat[2];

proctype Clock() {
  do
  :: now < END -> now++
  :: now == END -> break
  od
}

proctype Node(byte self) {
  byte own = 0, memory = 0, leaseEnd = 0, sent, seen = 255, since = 0, value;
  bool isDead = false;

  if
  :: self == 0 -> own = 1
  :: else
  fi;
  do
  :: now == END -> break

  /* A beat may be under way for any time before it arrives, and so may its acknowledgment. */
  :: !isDead && beat[self] < BEATS ->
    sent = now;
    atomic {
      if
      :: live[self] -> beat[self]++
      :: else -> isDead = true
      fi
    }
    if
    :: !isDead ->
#ifdef LATE_LEASE
      leaseEnd = now + LEASE
#else
      leaseEnd = sent + LEASE
#endif
    :: else -> leaseEnd = 0; own = 0
    fi

  /* The other node has been silent for a lease, and a little longer. */
  :: live[1 - self] && seen == beat[1 - self] ->
#ifndef NO_OBSERVATION
    if
    :: now > since + LEASE ->
#endif
      atomic { if :: beat[1 - self] == seen -> live[1 - self] = false :: else fi }
#ifndef NO_OBSERVATION
    :: else
    fi
#endif
  :: seen != beat[1 - self] -> seen = beat[1 - self]; since = now

  :: !isDead && own == 0 && leader != self && !live[1 - self] ->
    atomic {
      if
      :: leader != self && !live[1 - self] -> epoch++; leader = self; own = epoch; memory = committed
      :: else
      fi
    }

  :: own != 0 && committed < COMMITS ->
    atomic {
      if
#ifdef NO_FENCE
      :: true -> memory++; committed = memory
#else
      :: epoch == own -> memory++; committed = memory
      :: else -> own = 0
#endif
      fi
    }

  :: own != 0 ->
    if
#ifdef NO_LEASE
    :: true ->
#else
    :: now < leaseEnd ->
#endif
      value = memory;
      atomic {
        if
#if defined(NO_LEASE) || defined(ONE_CHECK)
        :: true -> assert(value == committed)
#else
        :: now < leaseEnd -> assert(value == committed)
        :: else
#endif
        fi
      }
    :: else
    fi
  od
}

init { atomic { run Clock(); run Node(0); run Node(1) } }
