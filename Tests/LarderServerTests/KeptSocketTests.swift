import Foundation
import Glibc
import Platform
import Testing

@testable import LarderServer

extension ServerTests {
  /// Sockets that an earlier process opened.
  struct KeptSocketTests {
    @Test func `a kept socket is taken up once, though its address is there twice`() throws {
      let path = NSTemporaryDirectory() + "larder-kept-\(UInt32.random(in: 0 ... .max))"
      defer { _ = unsafe unlink(path) }
      let address = Address.unix(path: path)
      let first = try ListeningSocket.open(address, removesFile: false)
      var configuration = ServerConfiguration(addresses: [address, address])
      configuration.kept = [
        (address, InheritedSocket(name: first.keptName, descriptor: dup(first.descriptor.number)))
      ]
      _ = consume first
      #expect(throws: ListenError.self) { try Server(configuration) }
    }
  }
}
