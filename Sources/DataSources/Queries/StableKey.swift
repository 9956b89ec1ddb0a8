import Foundation

/// An id with a key that is the same in every process and on every machine.
///
/// Strings are their own keys, integers their decimals, UUIDs their usual text; an enum over one of them has its raw value's key with
/// nothing but the conformance declared. Other id types say what their key is. `hashValue` is no such key: it changes with every process.
public protocol StableKey: Hashable, Sendable {
  /// The key. Ids that differ have different keys.
  var stableKey: String { get }
}

extension StableKey where Self: BinaryInteger {
  public var stableKey: String { String(self) }
}

extension StableKey where Self: RawRepresentable, RawValue: StableKey {
  public var stableKey: String { rawValue.stableKey }
}

extension String: StableKey {
  public var stableKey: String { self }
}

extension UUID: StableKey {
  public var stableKey: String { uuidString }
}

extension Int: StableKey {}
extension Int8: StableKey {}
extension Int16: StableKey {}
extension Int32: StableKey {}
extension Int64: StableKey {}
extension UInt: StableKey {}
extension UInt8: StableKey {}
extension UInt16: StableKey {}
extension UInt32: StableKey {}
extension UInt64: StableKey {}
