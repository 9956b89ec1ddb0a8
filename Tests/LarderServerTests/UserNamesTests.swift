import Dispatch
import Platform
import Testing

@testable import LarderServer

struct UserNamesTests {
  private func peer(_ user: UInt32) -> Credentials { Credentials(process: 1, user: user, group: 1) }

  @Test func `users are called by their names, and asked for once`() {
    let asked = Lock(0)
    let names = UserNames { user in
      asked.withLock { $0 += 1 }
      return user == 33 ? "web" : nil
    }
    // On a busy machine the first answer may come too late to be waited for.
    while names.client(peer(33)) != "user web (uid 33)" {}
    for _ in 0..<3 { #expect(names.client(peer(34)) == "uid 34") }
    #expect(names.client(nil) == "a TCP client")
    while asked.withLock({ $0 }) < 2 { _ = names.client(peer(34)) }
    #expect(names.client(peer(33)) == "user web (uid 33)" && names.client(peer(34)) == "uid 34")
    #expect(asked.withLock { $0 } == 2)
  }

  @Test func `a system that doesn't answer keeps nobody from going on, and is asked for nobody else`() {
    let goOn = DispatchSemaphore(value: 0)
    let asked = Lock<[UInt32]>([])
    let names = UserNames { user in
      asked.withLock { $0.append(user) }
      goOn.wait()
      return "web"
    }
    for user in 33...40 as ClosedRange<UInt32> { #expect(names.client(peer(user)) == "uid \(user)") }
    while asked.withLock({ $0.isEmpty }) {}
    #expect(asked.withLock { $0 } == [33])
    goOn.signal()
    while names.client(peer(33)) != "user web (uid 33)" {}
  }
}
