/* The lease and the fence of replicated stores (Protocol/replicated-format.md): two nodes, a database, and a clock.
 *
 * A read that passes both checks of the lease never shows less than what was acknowledged, whatever is delayed. contrib/model
 * checks all interleavings, and that each broken rule is noticed:
 *
 *   NO_FENCE        an append does not check that its node still leads
 *   NO_LEASE        reads do not check the lease
 *   ONE_CHECK       reads check the lease before they are executed, but not before the reply
 *   NO_OBSERVATION  a node is declared dead although its beat was not seen for a lease
 *   LATE_LEASE      the lease begins when the beat is acknowledged
 *
 * Times are counted in ticks, from an event on, and no further than it matters.
 */

#define LEASE 2

/* The database. Each atomic step is a transaction. */
byte leader = 0;
bool live[2] = true;
/* Whether a node has beaten since the other one last looked. */
bool fresh[2];

/* How long the other node has seen the same beat of a node, the rest of a node's lease, and how long its beat has been under
 * way. */
byte seen[2];
byte lease[2];
byte flight[2];

/* Whether what a node has in memory lacks a commit. */
bool stale[2];

inline tick(node) {
  if :: seen[node] <= LEASE -> seen[node]++ :: else fi;
  if :: lease[node] > 0 -> lease[node]-- :: else fi;
  if :: flight[node] < LEASE -> flight[node]++ :: else fi
}

active proctype Clock() {
  do
  :: atomic { tick(0); tick(1) }
  od
}

proctype Beats(byte self) {
  bool isAlive;

  do
  :: flight[self] = 0;
    atomic { isAlive = live[self]; if :: isAlive -> fresh[self] = true :: else fi };
    if
    :: isAlive ->
#ifdef LATE_LEASE
      lease[self] = LEASE
#else
      atomic { lease[self] = LEASE - flight[self] }
#endif
    :: else -> lease[self] = 0; break
    fi
  od
}

proctype Node(byte self) {
  byte other = 1 - self;
  /* Whether it believes that it leads the store. */
  bool leads = self == 0;
  bool isStale;

  do
  :: atomic { fresh[other] -> fresh[other] = false; seen[other] = 0 }

#ifdef NO_OBSERVATION
  :: atomic { live[other] && !fresh[other] -> live[other] = false }
#else
  :: atomic { live[other] && !fresh[other] && seen[other] > LEASE -> live[other] = false }
#endif

  :: atomic { live[self] && leader == other && !live[other] ->
      leader = self; leads = true; stale[self] = false
    }

#ifdef NO_FENCE
  :: atomic { leads -> stale[other] = true }
#else
  :: atomic { leads -> if :: leader == self -> stale[other] = true :: else -> leads = false fi }
#endif

#ifdef NO_LEASE
  :: leads ->
#else
  :: leads && lease[self] > 0 ->
#endif
    isStale = stale[self];
#if !defined(NO_LEASE) && !defined(ONE_CHECK)
    if
    :: lease[self] > 0 -> assert(!isStale)
    :: else
    fi
#else
    assert(!isStale)
#endif
  od
}

init { stale[1] = true; atomic { run Beats(0); run Beats(1); run Node(0); run Node(1) } }
