import Documents
import Foundation
import TestSupport
import Testing

@Suite struct `JSONTestSuite` {
  private func files(in folder: String) throws -> [String: [UInt8]] {
    let folder = ProjectFiles.url("Tests/DocumentsTests/JSON/JSONTestSuite/\(folder)")
    let files = try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
    return Dictionary(
      uniqueKeysWithValues: try files.map { ($0.lastPathComponent, [UInt8](try Data(contentsOf: $0))) })
  }

  private func isJSON(_ text: [UInt8]) -> Bool {
    do { try JSON.validate(text.span) } catch { return false }
    return true
  }

  @Test func `valid files of JSONTestSuite are accepted, and invalid ones are refused`() throws {
    let files = try files(in: "test_parsing").filter { !$0.key.hasPrefix("i_") }
    #expect(files.count == 283)
    for (name, text) in files { #expect(isJSON(text) == name.hasPrefix("y_"), "\(name)") }
  }

  /// The files that RFC 8259 leaves to the implementation, of which we accept these: numbers beyond the range or the
  /// precision of doubles, and deep nesting. The others are not valid UTF-8, have half of a surrogate pair, or have a
  /// byte order mark.
  private static let accepted: Set<String> = [
    "i_number_double_huge_neg_exp.json", "i_number_huge_exp.json", "i_number_neg_int_huge_exp.json",
    "i_number_pos_double_huge_exp.json", "i_number_real_neg_overflow.json", "i_number_real_pos_overflow.json",
    "i_number_real_underflow.json", "i_number_too_big_neg_int.json", "i_number_too_big_pos_int.json",
    "i_number_very_big_negative_int.json", "i_structure_500_nested_arrays.json",
  ]

  private static let refused: [String: JSONError.Expectation] = [
    "i_object_key_lone_2nd_surrogate.json": .surrogatePair,
    "i_string_1st_surrogate_but_2nd_missing.json": .surrogatePair,
    "i_string_1st_valid_surrogate_2nd_invalid.json": .surrogatePair,
    "i_string_UTF-16LE_with_BOM.json": .value,
    "i_string_UTF-8_invalid_sequence.json": .utf8,
    "i_string_UTF8_surrogate_U+D800.json": .utf8,
    "i_string_incomplete_surrogate_and_escape_valid.json": .surrogatePair,
    "i_string_incomplete_surrogate_pair.json": .surrogatePair,
    "i_string_incomplete_surrogates_escape_valid.json": .surrogatePair,
    "i_string_invalid_lonely_surrogate.json": .surrogatePair,
    "i_string_invalid_surrogate.json": .surrogatePair,
    "i_string_invalid_utf-8.json": .utf8,
    "i_string_inverted_surrogates_U+1D11E.json": .surrogatePair,
    "i_string_iso_latin_1.json": .utf8,
    "i_string_lone_second_surrogate.json": .surrogatePair,
    "i_string_lone_utf8_continuation_byte.json": .utf8,
    "i_string_not_in_unicode_range.json": .utf8,
    "i_string_overlong_sequence_2_bytes.json": .utf8,
    "i_string_overlong_sequence_6_bytes.json": .utf8,
    "i_string_overlong_sequence_6_bytes_null.json": .utf8,
    "i_string_truncated-utf-8.json": .utf8,
    "i_string_utf16BE_no_BOM.json": .value,
    "i_string_utf16LE_no_BOM.json": .value,
    "i_structure_UTF-8_BOM_empty_object.json": .noByteOrderMark,
  ]

  @Test func `each file that the JSON standard leaves open has the documented result`() throws {
    let files = try files(in: "test_parsing").filter { $0.key.hasPrefix("i_") }
    #expect(Set(files.keys) == Self.accepted.union(Self.refused.keys))
    for (name, text) in files {
      var expected: JSONError.Expectation?
      do { try JSON.validate(text.span) } catch { expected = error.expected }
      #expect(expected == Self.refused[name], "\(name)")
    }
  }

  /// What values become; nil for text that is refused.
  private static let transformed: [String: JSONValue?] = [
    "number_-9223372036854775808.json": [.integer(.min)],
    "number_-9223372036854775809.json": [-0x1p63],
    "number_1.0.json": [1.0],
    "number_1.000000000000000005.json": [1.0],
    "number_1000000000000000.json": [1_000_000_000_000_000],
    "number_10000000000000000999.json": [1e19],
    "number_1e-999.json": [0.0],
    "number_1e6.json": [1e6],
    "number_9223372036854775807.json": [.integer(.max)],
    "number_9223372036854775808.json": [0x1p63],
    "object_key_nfc_nfd.json": ["\u{E9}": "NFC", "e\u{301}": "NFD"],
    "object_key_nfd_nfc.json": ["\u{E9}": "NFC", "e\u{301}": "NFD"],
    "object_same_key_different_values.json": ["a": 2],
    "object_same_key_same_value.json": ["a": 1],
    "object_same_key_unclear_values.json": ["a": 0],
    "string_1_escaped_invalid_codepoint.json": .none,
    "string_1_invalid_codepoint.json": .none,
    "string_2_escaped_invalid_codepoints.json": .none,
    "string_2_invalid_codepoints.json": .none,
    "string_3_escaped_invalid_codepoints.json": .none,
    "string_3_invalid_codepoints.json": .none,
    "string_with_escaped_NULL.json": ["A\u{0}B"],
  ]

  @Test func `values that other JSON parsers change are read as documented`() throws {
    let files = try files(in: "test_transform")
    #expect(Set(files.keys) == Set(Self.transformed.keys))
    for (name, text) in files {
      #expect(try (try? JSONValue(parsing: text.span)) == #require(Self.transformed[name]), "\(name)")
    }
  }
}
