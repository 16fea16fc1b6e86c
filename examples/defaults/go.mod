module example.com/defaults

go 1.24

require github.com/vmhost/vmhost/plugins/sdk-go v0.0.0

replace github.com/vmhost/vmhost/plugins/sdk-go => ../../plugins/sdk-go
