// swift-format-ignore-file: AlwaysUseLowerCamelCase

import DataSources

// Harmony's errors are classes. Here an error is a value of one type, and these functions have the classes' names.

/// Harmony's names for the errors of data sources. To match an error, write `catch DataSourceError.notFound`.
public enum CoreError {
  public static func Unknown(_ message: String = "") -> DataSourceError { DataSourceError(.unknown, message) }
  public static func NotFound(_ message: String = "") -> DataSourceError { DataSourceError(.notFound, message) }
  public static func IllegalArgument(_ message: String = "") -> DataSourceError {
    DataSourceError(.illegalArgument, message)
  }
  public static func NotImplemented(_ message: String = "") -> DataSourceError {
    DataSourceError(.notImplemented, message)
  }
  public static func NotValid(_ message: String = "") -> DataSourceError { DataSourceError(.notValid, message) }
  public static func Failed(_ message: String = "") -> DataSourceError { DataSourceError(.failed, message) }
  public static func QueryNotSupported(_ message: String = "") -> DataSourceError {
    DataSourceError(.queryNotSupported, message)
  }
  public static func DataSerialization(_ message: String = "") -> DataSourceError {
    DataSourceError(.dataSerialization, message)
  }
}
