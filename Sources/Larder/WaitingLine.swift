/// Calls that wait for their turn, first come first served: a plain value. Owned by the connection's lock.
struct WaitingLine<Caller: Sendable>: Sendable {
  private struct Place {
    let token: UInt64
    let deadline: UInt64
    let caller: Caller
  }

  /// Places before `head` are empty; so is any whose caller gave up.
  private var places: [Place?] = []
  private var head = 0
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ caller: Caller, token: UInt64, deadline: UInt64) {
    places.append(Place(token: token, deadline: deadline, caller: caller))
    count += 1
  }

  /// Whose turn it is. Amortised O(1).
  mutating func popFirst() -> Caller? {
    while head < places.count {
      let place = places[head]
      places[head] = nil
      head += 1
      if head == places.count || head > 1_024 {
        places.removeFirst(head)
        head = 0
      }
      if let place {
        count -= 1
        return place.caller
      }
    }
    return nil
  }

  mutating func popAll() -> [Caller] {
    let callers = places.compactMap { $0?.caller }
    places.removeAll()
    head = 0
    count = 0
    return callers
  }

  /// Takes a caller out of the line. O(places).
  mutating func remove(token: UInt64) -> Caller? {
    guard let index = places.firstIndex(where: { $0?.token == token }), let place = places[index] else { return nil }
    places[index] = nil
    count -= 1
    return place.caller
  }

  /// Takes out those whose time is up. O(places).
  mutating func expire(now: UInt64) -> (callers: [Caller], next: UInt64) {
    var callers: [Caller] = []
    var next = UInt64.max
    for index in places.indices {
      guard let place = places[index] else { continue }
      if place.deadline <= now {
        callers.append(place.caller)
        places[index] = nil
        count -= 1
      } else {
        next = min(next, place.deadline)
      }
    }
    return (callers, next)
  }
}
