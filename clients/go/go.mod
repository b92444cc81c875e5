module fencedlease.dev/clients/go

go 1.21
