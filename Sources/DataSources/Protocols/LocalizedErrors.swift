import Documents
import FoundationEssentials

// The module Documents doesn't use Foundation, so its errors say here what they say to people. None is translated.

extension JSONError: LocalizedError {
  public var errorDescription: String? { description }
}

extension SelectorError: LocalizedError {
  public var errorDescription: String? { description }
}

extension RegularExpressionError: LocalizedError {
  public var errorDescription: String? { description }
}

extension DocumentIndexError: LocalizedError {
  public var errorDescription: String? { description }
}

extension DocumentUpdateError: LocalizedError {
  public var errorDescription: String? { description }
}
