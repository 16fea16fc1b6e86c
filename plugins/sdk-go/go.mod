module github.com/vmhost/vmhost/plugins/sdk-go

go 1.24
