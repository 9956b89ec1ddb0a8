import CWebConsole
import CZlib
import Documents
import LarderServer
import YAML

/// The console that browsers show, and the description of the API that it uses.
package enum WebConsole {
  /// Returns the files of the console, which are part of the program.
  /// - Throws: `YAMLError` if the description isn't valid.
  package static func assets() throws -> [HTTPAsset] {
    var assets: [HTTPAsset] = []
    guard var next = unsafe CWebConsole_files() else { preconditionFailure("there are files") }
    while let path = unsafe next.pointee.path {
      unsafe assets.append(asset(String(cString: path), content(of: next.pointee)))
      unsafe next += 1
    }
    let description = try YAMLParser.document(in: unsafe content(of: CWebConsole_description))
    assets.append(asset("openapi.json", (description?.json ?? .null).encoded()))
    return assets
  }

  private static func content(of file: CWebConsole_File) -> [UInt8] {
    unsafe Array(UnsafeBufferPointer(start: file.bytes, count: file.size))
  }

  private static func asset(_ path: String, _ content: [UInt8]) -> HTTPAsset {
    HTTPAsset(
      path: path, type: type(of: path), content: content, compressedContent: Gzip.compressed(content),
      version: "\(String(Gzip.checksum(of: content), radix: 16))-\(content.count)")
  }

  private static func type(of path: String) -> StaticString {
    if path.hasSuffix(".js") { return "text/javascript; charset=utf-8" }
    if path.hasSuffix(".css") { return "text/css; charset=utf-8" }
    if path.hasSuffix(".svg") { return "image/svg+xml" }
    return path.hasSuffix(".json") ? "application/json" : "text/html; charset=utf-8"
  }
}

extension YAMLNode {
  /// The value as JSON. Text without quotes is a number, a Boolean or null if it looks like one in JSON.
  fileprivate var json: JSONValue {
    switch self {
    case .scalar(let text, let isPlain, _):
      guard isPlain else { return .string(text) }
      if isNull { return .null }
      if text == "true" || text == "false" { return .bool(text == "true") }
      return Int64(text).map { .integer($0) } ?? .string(text)
    case .list(let items, _): return .array(items.map(\.json))
    case .mapping(let members, _):
      var object = JSONObject()
      for member in members {
        if case .scalar(let name, _, _) = member.key { object[name] = member.value.json }
      }
      return .object(object)
    }
  }
}
