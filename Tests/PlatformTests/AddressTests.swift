import Glibc
import Platform
import Testing

struct AddressTests {
  @Test(arguments: [
    ("unix:/run/larder.sock", Address.unix(path: "/run/larder.sock")),
    ("unix:relative.sock", .unix(path: "relative.sock")),
    ("unix:/tmp/a:b", .unix(path: "/tmp/a:b")),
    ("unix:/tmp/ключ", .unix(path: "/tmp/ключ")),
    ("tcp:127.0.0.1:7411", .tcp(host: "127.0.0.1", port: 7_411)),
    ("tcp:localhost:0", .tcp(host: "localhost", port: 0)),
    ("tcp:localhost:65535", .tcp(host: "localhost", port: 65_535)),
    ("tcp:[::1]:80", .tcp(host: "::1", port: 80)),
    ("tcp:[127.0.0.1]:80", .tcp(host: "127.0.0.1", port: 80)),
  ])
  func `an address is parsed from its text`(_ text: String, _ address: Address) throws {
    #expect(try Address(text) == address)
    #expect(try Address("\(address)") == address)
  }

  @Test(arguments: [
    "", "unix", "unix:", "UNIX:/a", "tcp", "tcp:", "tcp:localhost", "tcp:localhost:", "tcp::80", "tcp:localhost:65536",
    "tcp:localhost:-1", "tcp:localhost:+80", "tcp:localhost:8o", "tcp:localhost: 80", "tcp:::1:80", "tcp:[::1]",
    "tcp:[]:80", "http://localhost", "/run/larder.sock", "unix:/a\u{0}b", "tcp:local\u{0}host:80",
  ])
  func `a text that is not an address is rejected with a reason`(_ text: String) {
    let error = #expect(throws: AddressError.self) { try Address(text) }
    #expect(error?.description.hasPrefix("'\(text)' is not an address: ") == true)
  }

  @Test func `a path is at most as long as Linux allows`() throws {
    let longest = String(repeating: "a", count: Address.maxPathLength)
    #expect(try Address("unix:\(longest)") == .unix(path: longest))
    #expect(throws: AddressError.self) { try Address("unix:\(longest)a") }
    // 54 characters of two bytes each are too long, though 107 characters are not.
    #expect(throws: AddressError.self) { try Address("unix:\(String(repeating: "é", count: 54))") }
  }

  @Test func `the default address can be formatted and parsed`() throws {
    #expect(try Address("\(Address.default)") == Address.default)
  }
}
