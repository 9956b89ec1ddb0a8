/// Hashes that are the same in every process and version.
enum StableHash {
  /// Returns the hash of bytes (FNV-1a).
  static func of(_ bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
  }
}
