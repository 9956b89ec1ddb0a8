// swift-format-ignore-file: AlwaysUseLowerCamelCase

import DataSources

// Harmony's operations are classes. Here an operation is a value of one type, and these functions have the classes'
// names.

/// The operation of a repository's call. Write `DataSourceFutures.Operation` in a file that imports Foundation, too.
public typealias Operation = RepositoryOperation

/// Does the same as `RepositoryOperation.default`.
public func DefaultOperation() -> RepositoryOperation { .default }

/// Does the same as `RepositoryOperation.main`.
public func MainOperation() -> RepositoryOperation { .main }

/// Does the same as `RepositoryOperation.mainSync`.
public func MainSyncOperation() -> RepositoryOperation { .mainSync }

/// Does the same as `RepositoryOperation.cache`.
public func CacheOperation() -> RepositoryOperation { .cache }

/// Does the same as `RepositoryOperation.cacheSync`.
/// - Parameter fallback: Whether a cached value that is no longer valid is better than an error of the main source.
public func CacheSyncOperation(fallback: Bool = false) -> RepositoryOperation { .cacheSync(fallback: fallback) }
